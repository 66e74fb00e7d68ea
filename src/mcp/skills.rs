//! Skills as MCP describes them: the extension `io.modelcontextprotocol/skills` (SEP-2640), in which each file of a skill
//! is a resource, and two methods tell of the skills that there are.

use rmcp::{
    ErrorData,
    model::{CacheScope, CustomRequest, CustomResult, ReadResourceRequestParams},
};
use serde_json::{Map, Value, json};

use super::catalogue::LIST_TTL_MS;
use crate::skills::Skill;

pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";
const LIST: &str = "skills/list";
const GET: &str = "skills/get";

/// The method, if it is one of the extension.
pub(super) fn method(name: &str) -> Option<&'static str> {
    [LIST, GET].into_iter().find(|method| *method == name)
}

/// Answers a request of the extension.
pub(super) fn answer(request: &CustomRequest, skills: &[Skill], is_modern: bool) -> Result<CustomResult, ErrorData> {
    let mut result = match request.method == LIST {
        true => json!({ "skills": skills.iter().map(entry).collect::<Vec<_>>() }),
        false => json!({ "skill": entry(find(request, skills)?) }),
    };
    if is_modern {
        result["resultType"] = "complete".into();
        result["ttlMs"] = LIST_TTL_MS.into();
        result["cacheScope"] = json!(CacheScope::Private);
    }
    Ok(CustomResult::new(result))
}

fn find<'a>(request: &CustomRequest, skills: &'a [Skill]) -> Result<&'a Skill, ErrorData> {
    let params: Result<Option<ReadResourceRequestParams>, _> = request.params_as();
    let Ok(Some(params)) = params else {
        return Err(ErrorData::invalid_params(
            "`params.uri` must be the URI of a skill's SKILL.md",
            None,
        ));
    };
    skills.iter().find(|skill| skill.uri() == params.uri).ok_or_else(|| {
        let shown: String = params.uri.chars().take(200).collect();
        ErrorData::invalid_params(
            format!("No skill is served at {shown}; skills/list shows those that are"),
            None,
        )
    })
}

fn entry(skill: &Skill) -> Value {
    let uri = skill.uri();
    let file = json!({ "uri": uri, "digest": skill.digest(), "size": skill.text.len() });
    let mut entry = Map::new();
    entry.insert("uri".to_owned(), uri.into());
    entry.insert("frontmatter".to_owned(), skill.front_matter().into());
    entry.insert("resources".to_owned(), json!([file]));
    entry.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rmcp::model::ErrorCode;

    use super::*;
    use crate::{skills::skills, tools::catalogue};

    fn parameters(schema: &Value, found: &mut BTreeSet<String>) {
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            found.insert(name.clone());
            parameters(member, found);
            parameters(&member["items"], found);
        }
    }

    #[test]
    fn skills_name_tools_and_parameters_that_there_are() {
        let catalogue = catalogue();
        let mut known: BTreeSet<String> = catalogue.iter().map(|tool| tool.name.to_owned()).collect();
        for tool in &catalogue {
            parameters(&tool.input_schema.clone().into(), &mut known);
        }
        for skill in skills() {
            let words = skill
                .text
                .split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
            let names: Vec<&str> = words.filter(|word| word.contains('_')).collect();
            assert!(names.contains(&"read_nb_cells"), "{}", skill.name);
            let unknown: Vec<_> = names.iter().filter(|name| !known.contains(**name)).collect();
            assert!(unknown.is_empty(), "{} names {unknown:?}", skill.name);
        }
    }

    #[test]
    fn only_skills_are_got() {
        let get = |params: Value| answer(&CustomRequest::new(GET, Some(params)), skills(), false);
        let skill = &skills()[0];
        let got = get(json!({ "uri": skill.uri() })).expect("a skill").0;
        let listed = answer(&CustomRequest::new(LIST, None), skills(), false)
            .expect("a list")
            .0;
        assert_eq!(got["skill"], listed["skills"][0]);
        assert!(got.get("ttlMs").is_none(), "{got}");
        for params in [
            json!({ "uri": "skill://other/SKILL.md" }),
            json!({}),
            json!({ "uri": 5 }),
        ] {
            assert_eq!(get(params).expect_err("refused").code, ErrorCode::INVALID_PARAMS);
        }
        assert_eq!((method("skills/get"), method("skills/other")), (Some(GET), None));
    }
}
