//! Images in a notebook's outputs, as an agent sees them.

use std::{
    io::Cursor,
    sync::atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::future::join_all;
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, eventually, gateway::lab_server, lab};

/// A notebook whose one cell shows a plot of this size.
fn notebook_with_plot(width: u32, height: u32) -> String {
    let mut png = Cursor::new(Vec::new());
    let plot = DynamicImage::new_rgb8(width, height);
    plot.write_to(&mut png, ImageFormat::Png).unwrap();
    let data = json!({ "image/png": BASE64_STANDARD.encode(png.into_inner()), "image/svg+xml": "<svg/>", "text/plain": "<Figure>" });
    let output = json!({ "output_type": "display_data", "data": data, "metadata": {} });
    let cell = json!({ "id": "plot", "cell_type": "code", "source": "plot()", "metadata": {}, "outputs": [output], "execution_count": 1 });
    json!({ "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string()
}

async fn read(settings: &str, notebook: &str) -> Value {
    let gateway = Gateway::with(settings).await;
    let path = lab().folder().write("a.ipynb", notebook);
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let call = json!({ "name": "read_nb_cells", "arguments": { "path": path } });
    agent.request("tools/call", call).await["result"].take()
}

fn shown(result: &Value) -> &Value {
    &result["structuredContent"]["cells"][0]["outputs"][0]["data"]
}

#[tokio::test]
async fn a_large_plot_is_scaled_and_comes_whole() {
    let result = read("", &notebook_with_plot(2000, 1000)).await;
    let block = &result["content"][1];
    assert_eq!(
        (&block["type"], &block["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    let bytes = BASE64_STANDARD.decode(block["data"].as_str().unwrap()).unwrap();
    let image = image::load_from_memory(&bytes).unwrap();
    assert_eq!((image.width(), image.height()), (700, 350));
    assert_eq!(shown(&result)["image/png"], "[image 1 attached]");
    assert_eq!(shown(&result)["image/svg+xml"], "<svg/>", "a drawing is text");
}

/// The pictures of one tenant's notebooks do not hold up those of another's.
#[tokio::test]
async fn another_tenants_large_images_are_not_waited_for() {
    let tenant = |name: &str| {
        format!(
            "[[tenants]]\nname = \"{name}\"\n[[auth.tokens]]\nname = \"{name}-agent\"\ntenant = \"{name}\"\ntoken = \"{name}-secret-token-0123456789\"\npermissions = [\"read\"]\n"
        )
    };
    let config = format!("{}{}{}", lab_server("lab"), tenant("many"), tenant("other"));
    let gateway = Gateway::configured(&config).await;
    let agent = async |name: &str| {
        let token = format!("{name}-secret-token-0123456789");
        Agent::connect_to(&gateway.url("/mcp"), &token, Era::Modern).await
    };
    let (many, other) = (agent("many").await, agent("other").await);
    let folder = lab().folder();
    let large = notebook_with_plot(3000, 2000);
    let paths: Vec<String> = (0..6).map(|n| folder.write(&format!("{n}.ipynb"), &large)).collect();
    let small = folder.write("small.ipynb", &notebook_with_plot(1, 1));
    let done = AtomicUsize::new(0);
    let read = async |agent: &Agent, path: &str| {
        let answer = agent.call("read_nb_cells", json!({ "path": path })).await;
        done.fetch_add(1, Ordering::Relaxed);
        answer.ok()
    };
    let others = async {
        // Both rooms are open by then, so that only images are left to wait for.
        read(&other, &small).await;
        eventually("the first large one is there", async || {
            (done.load(Ordering::Relaxed) >= 2).then_some(())
        })
        .await;
        let shown = read(&other, &small).await;
        assert_eq!(
            shown["cells"][0]["outputs"][0]["data"]["image/png"],
            "[image 1 attached]"
        );
        done.load(Ordering::Relaxed)
    };
    let (_, before) = tokio::join!(join_all(paths.iter().map(|path| read(&many, path))), others);
    assert!(before < 8, "the small one came after all the large ones");
}

#[tokio::test]
async fn an_operator_may_allow_larger_ones_or_none() {
    let larger = "[images]\nmax_width = 3000\nmax_height = 3000";
    let result = read(larger, &notebook_with_plot(2000, 1000)).await;
    let bytes = BASE64_STANDARD.decode(result["content"][1]["data"].as_str().unwrap());
    assert_eq!(image::load_from_memory(&bytes.unwrap()).unwrap().width(), 2000);
    let result = read("[images]\nenabled = false", &notebook_with_plot(20, 10)).await;
    assert_eq!(result["content"].as_array().unwrap().len(), 1);
    assert_eq!(shown(&result)["image/png"], "[image left out: images are switched off]");
}
