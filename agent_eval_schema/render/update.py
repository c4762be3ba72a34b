"""What an update of an evaluation would change, as text: its mask, then a block for each place.

    projects/p1/…/evaluations/refund
    mask  displayName,golden.turns

      displayName
        - Refund
        + Refunds

Computes nothing; all text goes through `visible`.
"""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from agent_eval_schema.formats.ces.update import UpdateReview
from agent_eval_schema.render.console import drawn, print_more, print_signed, sides
from agent_eval_schema.text.visible import visible


def update_text(review: UpdateReview, *, color: bool, width: int | None = None) -> str:
    """The review for a terminal of the given width (that of the terminal, or 100, if not given)."""

    def draw(console: Console) -> None:
        console.print(Text(visible(review.name), style="bold"), soft_wrap=True)  # one line each, to be copied
        console.print(Text("mask  ", style="dim").append(visible(review.mask), style="not dim cyan"), soft_wrap=True)
        if not review.compared:
            advice = "not compared with the stored evaluation: use --against STORED to show the changes"
            console.print(Text(advice, style="dim"))
        for field in review.fields:
            if not field.edits:
                same = Text(visible(field.path), style="cyan").append("  the same", style="dim")
                console.print(Padding(same, (1, 0, 0, 2)))
            for edit in field.edits:
                console.print(Padding(Text(visible(edit.path), style="cyan"), (1, 0, 0, 2)))
                for sign, style, line in sides(edit):
                    print_signed(console, sign, style, line, 4)
            print_more(console, field.more_edits, 4)

    return drawn(draw, color, width)
