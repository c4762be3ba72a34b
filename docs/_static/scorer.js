// The order of the search's hits: a page on a task before one that lists, and both before the changes of all versions.
const OF_FOLDER = [[/^how-to\/.*\/(?!index)/, 3], [/^(tutorials|concepts|quickstart|install)/, 1.5], [/^reference\/rules\//, 1.1], [/^(changelog|contributing)/, .3]];
var Scorer = {
  score: ([name, , , , score]) => score * (OF_FOLDER.find(([folder]) => folder.test(name))?.[1] ?? 1),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
// People type questions: a page needs no word that is rare on it, but those that tell pages apart. Each word counts by the
// pages that lack it, in a title three times; a page that has less than half of this is no hit.
for (const word of "can find get how mean need use want".split(" ")) stopwords.add(word);
Search.performTermsSearch = (words, excluded) => {
  const {terms, titleterms, filenames, docnames, titles} = Search._index, no = new Set([...excluded].flatMap(w => [terms[w] ?? []].flat()));
  const pages = (index, word) => new Set(Object.hasOwn(index, word) ? [index[word]].flat() : word.length < 3 ? [] : Object.keys(index).filter(term => term.includes(word)).flatMap(term => index[term]));
  const of = [...words].map(word => [pages(terms, word), pages(titleterms, word)]).filter(found => found.some(set => set.size));
  const weights = of.map(([text, title]) => Math.log(1 + filenames.length / Math.max(text.size, title.size))), all = weights.reduce((a, b) => a + b, 0);
  return filenames.flatMap((name, page) => {
    let share = 0, score = 0;
    of.forEach(([text, title], i) => {
      share += weights[i] / all * (text.has(page) || title.has(page));
      score += weights[i] / all * (title.has(page) ? Scorer.title : text.has(page) ? Scorer.term : 0);
    });
    return share < .5 || no.has(page) ? [] : [[docnames[page], titles[page], "", null, score * share * share, name, SearchResultKind.text]];
  });
};
