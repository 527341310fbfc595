//! Pages over numbers.
//!
//! Never: a store.

use domain::ids::PublicId;

use super::*;
use crate::http::iterators::Iterators;

fn seal(list: &str) -> Seal {
    Iterators::new("secret").of(list, PublicId::from_bytes([0; 20]), &[])
}

fn fixed(text: &str, order: Direction) -> Paging {
    Paging::fixed(&Query::parse(text), order, seal("numbers")).unwrap()
}

/// The numbers up to 100 are rows.
async fn read(paging: &Paging) -> Result<PageOf<u32>, Problem> {
    let is_row = async |id: String| Ok(id.parse::<u32>().unwrap() <= 100);
    paging.page(|text| text.parse().ok(), is_row).await
}

async fn ask(text: &str, order: Direction) -> ListOut<u32> {
    let paging = Paging::ordered(&Query::parse(text), order, seal("numbers")).unwrap();
    let page = read(&paging).await.unwrap();
    let rows = Paging::cut(&page, (1..=10).collect(), |row| *row);
    paging.frame(rows, u32::to_string)
}

#[tokio::test]
async fn a_list_is_walked_there_and_back() {
    for order in [Direction::Ascending, Direction::Descending] {
        let mut seen: Vec<u32> = Vec::new();
        let mut on = String::new();
        loop {
            let page = ask(&format!("limit=3{on}"), order).await;
            seen.extend(&page.data);
            on = format!("&iterator={}", page.iterator.unwrap());
            if page.done {
                break;
            }
        }
        let mut expected: Vec<u32> = (1..=10).collect();
        if order == Direction::Descending {
            expected.reverse();
        }
        assert_eq!(seen, expected);
        let back = ask(&format!("limit=3&iterator=-{}", expected[6]), order).await;
        assert_eq!(back.data, expected[3..6], "in the order of the list");
        let first = seal("numbers").put(&expected[3].to_string());
        assert_eq!(back.prev_iterator, Some(format!("-{first}")));
    }
}

#[tokio::test]
async fn edges_of_a_page() {
    let page = ask("limit=0", Direction::Ascending).await;
    assert!(page.data.is_empty() && !page.done && page.iterator.is_none());
    assert!(ask("limit=10", Direction::Ascending).await.done);
    assert!(!ask("limit=9", Direction::Ascending).await.done);
    let page = ask("iterator=10", Direction::Ascending).await;
    assert!(page.data.is_empty() && page.done && page.prev_iterator.is_none());
    let text = serde_json::to_string(&page).unwrap();
    assert_eq!(text, r#"{"data":[],"iterator":null,"done":true}"#);
}

#[tokio::test]
async fn the_far_end_reads_the_earliest_rows_in_the_order_of_the_list() {
    let paging = fixed("limit=2", Direction::Descending).with_far_end(true);
    let page = read(&paging).await.unwrap();
    let rows = Paging::cut(&page, (1..=10).collect(), |row| *row);
    assert_eq!(paging.frame(rows, u32::to_string).data, [2, 1]);
}

/// Rows up to 100 of which every tenth is wanted; a look passes 15.
async fn seek(text: &str) -> ListOut<u32> {
    let paging = fixed(text, Direction::Ascending);
    let page = read(&paging).await.unwrap();
    let (mut rows, mut reached) = (Vec::new(), None);
    let passed = Paging::cut(&PageOf { limit: 15, ..page }, (1..=100).collect(), |row| *row);
    for row in &passed {
        rows.extend((row % 10 == 0).then_some(*row));
        reached = Some(*row);
        if rows.len() >= page.limit {
            break;
        }
    }
    let reached = reached.filter(|_| passed.len() == 15);
    paging.look(Looked { rows, reached }, u32::to_string, |place| place.to_string())
}

#[tokio::test]
async fn a_page_that_was_cut_leads_on_from_where_the_look_ended() {
    let (mut seen, mut on, mut pages) = (Vec::<u32>::new(), String::new(), 0);
    loop {
        let page = seek(&format!("limit=3{on}")).await;
        seen.extend(&page.data);
        pages += 1;
        if page.done {
            break;
        }
        on = format!("&iterator={}", page.iterator.unwrap());
    }
    assert_eq!(seen, (1..=10).map(|row| row * 10).collect::<Vec<_>>());
    assert_eq!(pages, 7);
    let end = seal("numbers").put("101");
    let (mut seen, mut iterator) = (Vec::<u32>::new(), format!("-{end}"));
    loop {
        let page = seek(&format!("limit=3&iterator={iterator}")).await;
        seen.splice(0..0, page.data.iter().copied());
        if page.done {
            break;
        }
        iterator = page.prev_iterator.unwrap();
    }
    assert_eq!(seen, (1..=10).map(|row| row * 10).collect::<Vec<_>>(), "and back");
}

#[tokio::test]
async fn an_empty_page_leads_on_and_back() {
    let paging = |far| fixed("", Direction::Descending).with_far_end(far);
    let nothing = |reached| Looked { rows: Vec::<u32>::new(), reached };
    let empty = |paging: &Paging, reached| {
        let page = paging.look(nothing(reached), u32::to_string, |place: u32| place.to_string());
        (page.iterator, page.prev_iterator, page.done)
    };
    let seven = seal("numbers").put("7");
    let (on, back) = (Some(seven.clone()), Some(format!("-{seven}")));
    assert_eq!(empty(&paging(false), Some(7)), (on, back.clone(), false));
    assert_eq!(empty(&paging(true), Some(7)), (back.clone(), back, false));
    assert_eq!(empty(&paging(false), None), (None, None, true));
}

#[tokio::test]
async fn what_cannot_be_a_page_is_refused() {
    for text in ["limit=251", "limit=-1", "limit=x", "limit=99999999999999999999", "order=up"] {
        let refused = Paging::ordered(&Query::parse(text), Direction::Ascending, seal("numbers"));
        assert_eq!(refused.unwrap_err().status().as_u16(), 422, "{text}");
    }
    let (sealed, foreign) = (seal("numbers").put("200"), seal("others").put("10"));
    for text in ["", "x", "-", "--1", "%00", "101", "-101", "10~AAAAAAAAAAA", &foreign] {
        let paging = fixed(&format!("iterator={text}"), Direction::Ascending);
        let refused = read(&paging).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 422, "{text}");
    }
    for (text, place) in [("100", 100), ("-1", 1), (&sealed, 200)] {
        let paging = fixed(&format!("iterator={text}"), Direction::Ascending);
        assert_eq!(read(&paging).await.unwrap().beyond, Some(place), "{text}");
    }
}
