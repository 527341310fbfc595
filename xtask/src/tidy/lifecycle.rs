//! The picture of a delivery's life shows exactly the moves that the code names.
//!
//! In: the Mermaid state diagram of docs/lifecycle.md and `TRANSITIONS` of
//! crates/domain/src/delivery.rs: from, to, and what makes the move. Out: moves that only one has.
//! Never: runs the code; the domain's own tests hold `TRANSITIONS` and `may_become` together.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::lexer::{Kind, Token, tokens};
use crate::tree::Tree;

const PICTURE: &str = "docs/lifecycle.md";
const CODE: &str = "crates/domain/src/delivery.rs";
const MOVES: &str = "TRANSITIONS";

/// From, to, and the label on the arrow.
type Moves = BTreeSet<[String; 3]>;

/// The rule.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (Some(page), Some(code)) = (tree.get(PICTURE), tree.get(CODE)) else {
        return vec![Finding::new(PICTURE, 0, format!("{PICTURE} and {CODE} belong together"))];
    };
    let count = page.matches("stateDiagram").count();
    if count != 1 {
        return vec![Finding::new(
            PICTURE,
            0,
            format!("{count} state diagrams, there must be one"),
        )];
    }
    let (drawn, named) = (drawn(page), named(&tokens(code)));
    if named.is_empty() {
        return vec![Finding::new(CODE, 0, format!("no moves found in `{MOVES}`"))];
    }
    let say = |found: &Moves, other: &Moves, text: &str| -> Vec<Finding> {
        let lines =
            found.difference(other).map(|[from, to, why]| format!("{from} --> {to}: {why}"));
        lines.map(|line| Finding::new(PICTURE, 0, format!("`{line}` {text}"))).collect()
    };
    let mut findings = say(&named, &drawn, "is in the code and not in the picture");
    findings.extend(say(&drawn, &named, "is in the picture and not in the code"));
    findings
}

/// `a --> b: label` lines; `[*]`, the way in and out of the picture, is no state.
fn drawn(page: &str) -> Moves {
    let (_, rest) = page.split_once("stateDiagram").unwrap_or_default();
    let diagram = rest.split("```").next().unwrap_or_default();
    let arrows = diagram.lines().filter_map(|line| line.split_once("-->"));
    let moves = arrows.map(|(from, rest)| {
        let (to, label) = rest.split_once(':').unwrap_or((rest, ""));
        [from, to, label].map(|part| part.trim().to_owned())
    });
    moves.filter(|[from, to, _]| from != "[*]" && to != "[*]").collect()
}

/// The strings of the constant, three by three.
fn named(code: &[Token<'_>]) -> Moves {
    let constant =
        code.iter().skip_while(|token| !token.is(MOVES)).skip_while(|token| !token.is("="));
    let strings: Vec<String> = constant
        .take_while(|token| !token.is(";"))
        .filter(|token| token.kind == Kind::Text)
        .map(|token| token.text.trim_matches('"').to_owned())
        .collect();
    strings.chunks_exact(3).filter_map(|three| three.to_vec().try_into().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = "pub const TRANSITIONS: [(&str, &str, &str); 2] = [
        (\"pending\", \"dead\", \"given up\"), (\"dead\", \"pending\", \"replay\")];
        const OTHER: &str = \"other\";";
    const GOOD: &str =
        "[*] --> pending: accepted\npending --> dead: given up\n  dead --> pending: replay";

    fn found(picture: &str) -> Vec<String> {
        let page = format!("# Life\n```mermaid\nstateDiagram-v2\n{picture}\n```\na --> b\n");
        let tree = Tree::of(&[(PICTURE, &page), (CODE, RUST)]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_true_picture_passes() {
        assert!(found(GOOD).is_empty(), "{:?}", found(GOOD));
    }

    #[test]
    fn missing_invented_and_mislabelled_moves_are_found() {
        let turned = found(&GOOD.replace("pending --> dead", "dead --> dead"));
        assert_eq!(turned.len(), 2, "{turned:?}");
        assert!(turned[0].contains("`pending --> dead: given up` is in the code"), "{turned:?}");
        assert!(turned[1].contains("`dead --> dead: given up` is in the picture"), "{turned:?}");
        assert_eq!(found(&GOOD.replace("replay", "magic")).len(), 2);
    }

    #[test]
    fn a_second_picture_none_or_no_constant_is_found() {
        assert_eq!(found(&format!("{GOOD}\n```\n```mermaid\nstateDiagram-v2\n")).len(), 1);
        assert_eq!(check(&Tree::of(&[(CODE, RUST)])).len(), 1);
        let page = "stateDiagram-v2\n a --> b";
        assert_eq!(check(&Tree::of(&[(PICTURE, page), (CODE, "const A: u8 = 1;")])).len(), 1);
    }
}
