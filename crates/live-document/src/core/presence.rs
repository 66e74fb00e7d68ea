//! Appearance of an agent to people: its name, its activity, its colour, and a robot that tells it from a person.
//! Does no I/O.

use serde_json::{Value, json};

/// Colours that are readable on JupyterLab's light and dark themes.
const COLOURS: [&str; 8] = [
    "#8844ff", "#d6336c", "#0c8599", "#e8590c", "#2f9e44", "#1971c2", "#9c36b5", "#846358",
];

/// Activity of an agent in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It did something a moment ago.
    Idle,
    Reading,
    Editing,
    /// Its cells are queued.
    Queued,
    Running,
    /// Its code asks a question.
    AwaitingInput,
}

impl Activity {
    /// Returns whether it goes on by itself until its end is reported, unlike the activity of a single call.
    pub(crate) fn is_execution(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::AwaitingInput => true,
            Self::Idle | Self::Reading | Self::Editing => false,
        }
    }

    /// The activity in words; none if it is idle.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Idle => None,
            Self::Reading => Some("reading"),
            Self::Editing => Some("editing"),
            Self::Queued => Some("queued"),
            Self::Running => Some("running"),
            Self::AwaitingInput => Some("waiting for input"),
        }
    }
}

/// Availability that an agent declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Online,
    Away,
    Busy,
    /// Not shown to anybody.
    Offline,
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Online, Self::Away, Self::Busy, Self::Offline];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Away => "away",
            Self::Busy => "busy",
            Self::Offline => "offline",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Status of an agent, and a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    pub status: Status,
    pub message: Option<String>,
}

/// The texts beside an agent's name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameTexts<'a> {
    pub(crate) activity: Activity,
    pub(crate) availability: Option<&'a Availability>,
    /// A short-lived announcement to everybody.
    pub(crate) announcement: Option<&'a str>,
}

/// Characters of a message or an announcement that are shown beside a name.
const MAX_BESIDE_NAME: usize = 60;

impl NameTexts<'_> {
    /// The name with the texts beside it, as JupyterLab has room for one text only.
    fn display_name(&self, name: &str) -> String {
        let status = self.availability.map(|availability| availability.status);
        let declared = status.filter(|status| matches!(status, Status::Away | Status::Busy));
        let message = self
            .availability
            .and_then(|availability| availability.message.as_deref());
        let said = self.announcement.or(message).map(shortened);
        let mut words = vec![name.to_owned()];
        words.extend(self.activity.words().map(str::to_owned));
        words.extend(declared.map(|status| status.as_str().to_owned()));
        words.extend(said.filter(|said| !said.is_empty()));
        words.join(" · ")
    }
}

/// A text on one line, cut to what is readable beside a name.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_BESIDE_NAME) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

/// The user as JupyterLab shows it. The user panel hides entries with the viewer's own name and merges
/// equal ones, so the username is the principal's unique id.
pub(crate) fn user(id: &str, name: &str, texts: NameTexts<'_>) -> Value {
    let initials: String = name
        .split(|c: char| !c.is_alphanumeric())
        .filter_map(|word| word.chars().next())
        .take(2)
        .collect();
    let hash = id
        .bytes()
        .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let colour = COLOURS[hash % COLOURS.len()];
    json!({
        "username": id,
        "name": name,
        "display_name": texts.display_name(name),
        "initials": initials.to_uppercase(),
        "color": colour,
        "avatar_url": robot(colour),
    })
}

/// A robot's head on the agent's colour, which JupyterLab does not show around an image.
fn robot(colour: &str) -> String {
    let svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'><rect width='24' height='24' fill='{colour}'/>\
         <path d='M11 3h2v4h5v11H6V7h5zM3 10h2v5H3zm16 0h2v5h-2z' fill='white'/>\
         <path d='M8 10h3v3H8zm5 0h3v3h-3zm-4 5h6v1H9z' fill='{colour}'/></svg>"
    );
    let encoded = svg
        .replace('%', "%25")
        .replace('#', "%23")
        .replace('<', "%3C")
        .replace('>', "%3E");
    format!("data:image/svg+xml,{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doing(activity: Activity) -> NameTexts<'static> {
        NameTexts {
            activity,
            availability: None,
            announcement: None,
        }
    }

    #[test]
    fn a_status_and_a_message_stand_beside_the_name() {
        let busy = Availability {
            status: Status::Busy,
            message: Some("refactoring\n the loader".to_owned()),
        };
        let mut shown = doing(Activity::Idle);
        shown.availability = Some(&busy);
        assert_eq!(shown.display_name("ana"), "ana · busy · refactoring the loader");
        let long = "x".repeat(100);
        shown.announcement = Some(&long);
        shown.activity = Activity::Running;
        let expected = format!("ana · running · busy · {}…", "x".repeat(60));
        assert_eq!(shown.display_name("ana"), expected, "what is said now goes first");
        let online = Availability {
            status: Status::Online,
            message: None,
        };
        shown = doing(Activity::Idle);
        shown.availability = Some(&online);
        assert_eq!(shown.display_name("ana"), "ana");
    }

    #[test]
    fn an_agent_has_its_name_first_then_what_it_does_and_a_small_robot() {
        let shown = user("token:ana", "ana-agent", doing(Activity::AwaitingInput));
        assert_eq!(shown["name"], "ana-agent");
        assert_eq!(shown["display_name"], "ana-agent · waiting for input");
        assert_eq!(shown["initials"], "AA");
        assert_eq!(
            user("token:ana", "ana-agent", doing(Activity::Idle))["display_name"],
            "ana-agent"
        );
        let avatar = shown["avatar_url"].as_str().expect("a text");
        assert!(
            avatar.starts_with("data:image/svg+xml,%3Csvg") && avatar.len() < 600,
            "{avatar}"
        );
        assert!(
            !avatar.contains(['#', '<', '>']),
            "what ends or breaks a URL is encoded"
        );
    }
}
