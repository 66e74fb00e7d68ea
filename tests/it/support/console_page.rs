//! The page for people in a real browser: whoever uses it with the keyboard alone, on a phone, in the dark, or by a reader of
//! screens.

use serde_json::{Value, json};

use super::{TOKEN, browser::Page};

/// Goes by the tab key to what is called so, and sees on the way where it is.
const TO: &str = r"
const to = async (name) => {
  const passed = [];
  for (let count = 0; count < 150; count += 1) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const label = element.labels?.length ? element.labels[0].textContent : element.textContent;
      const box = element.getBoundingClientRect();
      return {
        name: (element.getAttribute('aria-label') ?? label ?? '').trim().replace(/\s+/g, ' '),
        tag: element.tagName,
        isSeen: outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2,
        isThere: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
      };
    });
    if (at.tag === 'BODY') continue;
    if (!at.isSeen || !at.isThere) throw new Error(`nobody sees that the focus is on ${JSON.stringify(at)}`);
    if (at.name.startsWith(name)) return;
    passed.push(at.name);
  }
  throw new Error(`the keyboard does not come to ${name}, but to ${JSON.stringify(passed)}`);
};
";

/// A browser at the page of a gateway.
pub struct ConsolePage {
    pub page: Page,
    base: String,
}

impl ConsolePage {
    /// Opens the first page.
    pub async fn at(base: &str) -> Self {
        let mut page = Page::open("about:blank").await;
        page.run(&format!("await page.goto({})", json!(format!("{base}/"))))
            .await;
        Self {
            page,
            base: base.to_owned(),
        }
    }

    /// The same, logged in.
    pub async fn logged_in(base: &str) -> Self {
        Self::with_token(base, TOKEN).await
    }

    pub async fn with_token(base: &str, token: &str) -> Self {
        let mut console = Self::at(base).await;
        console.log_in(token).await;
        console
    }

    /// Logs in with nothing but the keyboard.
    pub async fn log_in(&mut self, token: &str) {
        self.keys(&format!(
            "await to('Token'); await page.keyboard.type({}); await page.keyboard.press('Enter');",
            json!(token)
        ))
        .await;
        self.shows("Log out").await;
    }

    pub async fn run(&mut self, script: &str) -> Value {
        self.page.run(script).await
    }

    /// Runs a script that can go `to` something by the keyboard.
    pub async fn keys(&mut self, script: &str) -> Value {
        self.page.run(&format!("{TO}\n{script}")).await
    }

    /// Goes to something by the keyboard and presses a key there.
    pub async fn press(&mut self, name: &str, key: &str) {
        let script = format!("await to({}); await page.keyboard.press({});", json!(name), json!(key));
        self.keys(&script).await;
    }

    pub async fn go(&mut self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.run(&format!("await page.goto({})", json!(url))).await;
    }

    /// Text that somebody sees on the page.
    pub async fn text(&mut self) -> String {
        let text = self
            .run("return await page.evaluate(() => document.body.innerText)")
            .await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until somebody sees a text on the page.
    pub async fn shows(&mut self, text: &str) {
        let script = format!(
            "const text = await page.evaluate(() => document.body?.innerText ?? '').catch(() => '');
             return text.includes({}) ? true : null;",
            json!(text)
        );
        self.page.until(text, &script).await;
    }

    /// Waits until nobody sees a text on the page any more.
    pub async fn shows_no(&mut self, text: &str) {
        let script = format!(
            "const text = await page.evaluate(() => document.body?.innerText ?? {0}).catch(() => {0});
             return text.includes({0}) ? null : true;",
            json!(text)
        );
        self.page.until(&format!("anything but {text}"), &script).await;
    }

    /// Looks at the page as different people do: nothing is wrong for those who do not see it, colours can be told apart by day and
    /// by night, and nothing sticks out on a phone. Leaves pictures for whoever works on it.
    pub async fn check(&mut self, name: &str) {
        for (width, height, scheme) in [
            (1200, 850, "light"),
            (1200, 850, "dark"),
            (390, 844, "light"),
            (390, 844, "dark"),
        ] {
            let script = format!(
                "await page.setViewportSize({{ width: {width}, height: {height} }});
                 await page.emulateMedia({{ colorScheme: '{scheme}' }});
                 const wide = await page.evaluate(() => [...document.querySelectorAll('body *')]
                     .filter(one => one.getBoundingClientRect().right > innerWidth + 1
                         && !one.closest('.scroll, pre, .diff, .hidden'))
                     .map(one => one.outerHTML.slice(0, 200)));
                 const scrolls = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
                 return {{ wide, scrolls, wrong: await judged(page) }};"
            );
            let found = self.run(&script).await;
            self.picture(&format!("{name}-{width}-{scheme}")).await;
            assert_eq!(
                found,
                json!({ "wide": [], "scrolls": false, "wrong": [] }),
                "{name} at {width} px, {scheme}: {found:#}"
            );
        }
        self.run("await page.setViewportSize({ width: 1200, height: 850 }); await page.emulateMedia({ colorScheme: 'light' })")
            .await;
    }

    /// Leaves a picture of the whole page where `JMG_TEST_SCREENSHOTS` says.
    pub async fn picture(&mut self, name: &str) {
        if let Ok(folder) = std::env::var("JMG_TEST_SCREENSHOTS") {
            let file = std::path::Path::new(&folder).join(format!("console-{name}.png"));
            let options = json!({ "path": file, "fullPage": true });
            self.run(&format!("await page.screenshot({options})")).await;
        }
    }

    /// Asserts that neither the script nor the policy of the pages was in the way of anything.
    pub async fn had_no_problems(&mut self) {
        let problems = self.run("return problems").await;
        assert_eq!(problems, json!([]), "{problems:#}");
    }
}
