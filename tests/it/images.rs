//! Images in a notebook's outputs, as an agent sees them.

use std::io::Cursor;

use base64::{Engine, prelude::BASE64_STANDARD};
use image::{DynamicImage, ImageFormat};
use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, lab};

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
