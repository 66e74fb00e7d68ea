//! Activities as the store keeps them.

use jupyter_client::DocPath;
use serde_json::Value;
use store::ActivityRecord;

use super::{Activity, Actor};

/// Member in which a record keeps the tenant of its agent.
const TENANT: &str = "_tenant";

pub(super) fn record(activity: &Activity) -> ActivityRecord {
    let mut metadata = activity.metadata.clone();
    if let Some(tenant) = &activity.tenant {
        metadata.insert(TENANT.to_owned(), (**tenant).into());
    }
    ActivityRecord {
        activity_id: activity.id.clone(),
        time: activity.time,
        server: activity.server.to_string(),
        path: activity.path.as_ref().map(ToString::to_string),
        file_id: activity.file_id.as_ref().map(ToString::to_string),
        actor: activity.actor.id.to_string(),
        actor_name: activity.actor.name.clone(),
        is_agent: activity.actor.is_agent,
        activity_type: activity.kind.clone(),
        description: activity.description.clone(),
        metadata: Value::Object(metadata),
    }
}

/// The activity of a record; none if its path cannot be one, so that nobody could be let see it.
pub(super) fn activity(record: ActivityRecord) -> Option<Activity> {
    let mut metadata = match record.metadata {
        Value::Object(metadata) => metadata,
        _ => serde_json::Map::new(),
    };
    let tenant = metadata.remove(TENANT);
    Some(Activity {
        id: record.activity_id,
        time: record.time,
        server: record.server.into(),
        path: match record.path {
            Some(path) => Some(DocPath::parse(&path).ok()?),
            None => None,
        },
        file_id: record.file_id.map(Into::into),
        actor: Actor {
            id: record.actor.into(),
            name: record.actor_name,
            is_agent: record.is_agent,
        },
        kind: record.activity_type,
        description: record.description,
        metadata,
        tenant: tenant.as_ref().and_then(Value::as_str).map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_as_it_was() {
        let actor = Actor::agent(&"token:ana".into(), "ana");
        let mut written = Activity::new("edit", actor, "lab", "edited a.ipynb".to_owned())
            .about(DocPath::parse("a.ipynb").expect("a path"))
            .with("cell_ids", vec!["c1"]);
        written.tenant = Some("t".into());
        written.file_id = Some("f".into());
        assert_eq!(activity(record(&written)), Some(written));
    }
}
