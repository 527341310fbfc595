//! The body of a request: an object whose fields stay as they were spelled.
//!
//! Fields come from `--data` first, then from the options that have a name.
//! Never: a payload that is parsed and written again.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// An object, field by field.
#[derive(Debug, Default)]
pub(crate) struct Body(BTreeMap<String, Box<RawValue>>);

impl Body {
    /// With the fields of `--data`, if it was given.
    pub(crate) fn from_data(data: Option<&str>) -> Result<Self, Failure> {
        let Some(data) = data else { return Ok(Self::default()) };
        let text = text_of("--data", data)?;
        let fields = serde_json::from_str(&text);
        fields.map(Self).map_err(|fault| usage(format!("--data must be a JSON object: {fault}")))
    }

    /// Sets a field.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Failure> {
        let raw = serde_json::value::to_raw_value(value);
        let raw = raw.map_err(|fault| usage(format!("{name}: {fault}")))?;
        self.0.insert(name.to_owned(), raw);
        Ok(())
    }

    /// Sets a field if there is a value.
    pub(crate) fn set_some(
        &mut self,
        name: &str,
        value: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<(), Failure> {
        value.map_or(Ok(()), |value| self.set(name, value))
    }

    /// Sets a field to a list if it has entries.
    pub(crate) fn set_list(&mut self, name: &str, list: &[String]) -> Result<(), Failure> {
        if list.is_empty() { Ok(()) } else { self.set(name, &list) }
    }

    /// Sets a field to JSON as it is spelled in an argument, a file or standard input.
    pub(crate) fn set_json(&mut self, name: &str, option: &str, from: &str) -> Result<(), Failure> {
        let text = text_of(option, from)?;
        let raw = RawValue::from_string(text.trim().to_owned());
        let raw = raw.map_err(|fault| usage(format!("{option} must be JSON: {fault}")))?;
        self.0.insert(name.to_owned(), raw);
        Ok(())
    }

    /// Sets fields to `null`.
    pub(crate) fn unset(&mut self, names: &[String]) -> Result<(), Failure> {
        names.iter().try_for_each(|name| self.set(name, &()))
    }

    /// Sets a field to an object of texts.
    pub(crate) fn set_pairs(
        &mut self,
        name: &str,
        pairs: &[(String, String)],
    ) -> Result<(), Failure> {
        if pairs.is_empty() {
            return Ok(());
        }
        self.set(name, &pairs.iter().map(|(key, value)| (key, value)).collect::<BTreeMap<_, _>>())
    }

    /// Whether it has no field.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As JSON.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        // An object of texts and JSON is always JSON.
        serde_json::to_vec(&self.0).unwrap_or_else(|_| b"{}".to_vec())
    }
}

/// The text of an argument: `@FILE` is the text of a file, `-` that of standard input.
pub(crate) fn text_of(option: &str, argument: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match argument.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map(|read| text = read),
        None if argument == "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        None => return Ok(argument.to_owned()),
    };
    read.map_err(|fault| usage(format!("{option}: cannot read {argument}: {fault}")))?;
    Ok(text)
}

/// Reads `NAME=VALUE`.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    split(text, '=').ok_or_else(|| "must be NAME=VALUE".to_owned())
}

/// Reads `NAME: VALUE`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    split(text, ':').ok_or_else(|| "must be 'NAME: VALUE'".to_owned())
}

fn split(text: &str, mark: char) -> Option<(String, String)> {
    let (name, value) = text.split_once(mark)?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

fn usage(said: String) -> Failure {
    Failure::Usage(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_as_they_were_spelled() {
        let mut body = Body::from_data(Some(r#"{"n": 1.0e2, "name": "old"}"#)).unwrap();
        body.set("name", &"new").unwrap();
        body.set_json("payload", "--payload", r#" {"b":1.10,"a":"\u0041"} "#).unwrap();
        body.unset(&["uid".to_owned()]).unwrap();
        let text = String::from_utf8(body.bytes()).unwrap();
        assert_eq!(
            text,
            r#"{"n":1.0e2,"name":"new","payload":{"b":1.10,"a":"\u0041"},"uid":null}"#
        );
    }

    #[test]
    fn what_is_no_json_is_wrong_usage() {
        assert!(matches!(Body::from_data(Some("[1]")), Err(Failure::Usage(_))));
        let fault = Body::default().set_json("payload", "--payload", "{").unwrap_err();
        assert!(fault.to_string().starts_with("--payload must be JSON"), "{fault}");
        let fault = text_of("--data", "@/nowhere/at/all").unwrap_err();
        assert!(fault.to_string().contains("/nowhere/at/all"), "{fault}");
    }

    #[test]
    fn pairs_have_a_name() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(header("X-A: b:c "), Ok(("X-A".to_owned(), "b:c".to_owned())));
        assert!(pair("a").is_err() && pair("=a").is_err() && header("a").is_err());
    }
}
