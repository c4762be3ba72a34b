// The order of the search's hits: a page on a task before one that lists, and both before the changes of all versions.
const OF_FOLDER = [[/^how-to\/.*\/(?!index)/, 3], [/^(tutorials|concepts|quickstart|install)/, 1.5], [/^reference\/rules\//, .6], [/^(changelog|contributing)/, .3]];
var Scorer = {
  score: ([name, , , , score]) => score * (OF_FOLDER.find(([folder]) => folder.test(name))?.[1] ?? 1),
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
