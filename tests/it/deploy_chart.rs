//! The helm chart: what it makes of its examples is valid and works with the gateway, and what cannot work is refused.

use std::{collections::BTreeSet, fs, io::Write};

use reqwest::StatusCode;
use serde_json::Value;

use crate::support::{
    Gateway,
    command::{Ended, ended, gateway_command},
    operator_tools::{have_tools, helm, json_of, project},
};

const CHART: &str = "helm/jupyter-mcp-gateway";
const EXAMPLES: [&str; 5] = [
    "embedded",
    "gateway-api",
    "ingress-nginx",
    "traefik",
    "zero-to-jupyterhub",
];

fn example(name: &str) -> String {
    format!("{CHART}/examples/{name}.yaml")
}

fn template(values: &str) -> Ended {
    helm(&["template", "mcp", CHART, "--namespace", "research", "--values", values])
}

/// The objects that the chart makes of an example, all of which were validated.
fn objects(name: &str) -> Vec<Value> {
    let rendered = template(&example(name));
    assert_eq!(rendered.code, Some(0), "{name}: {}", rendered.stderr);
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(rendered.stdout.as_bytes()).unwrap();
    let files = json_of("validate.py", &[&file.path().display().to_string()]);
    files[0].as_array().unwrap().clone()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn config_of(objects: &[Value]) -> &str {
    let mut maps = of_kind(objects, "ConfigMap").into_iter();
    maps.find_map(|map| map["data"]["gateway.toml"].as_str()).unwrap()
}

/// The Deployment or StatefulSet.
fn workload(objects: &[Value]) -> &Value {
    let is_workload = |object: &&Value| ["Deployment", "StatefulSet"].contains(&object["kind"].as_str().unwrap());
    objects.iter().find(is_workload).unwrap()
}

#[test]
fn the_examples_pass_the_linter_and_the_schemas_of_kubernetes() {
    if !have_tools() {
        return;
    }
    let mut kinds = BTreeSet::new();
    for name in EXAMPLES {
        let linted = helm(&["lint", "--strict", CHART, "--values", &example(name)]);
        assert_eq!(linted.code, Some(0), "{name}: {}{}", linted.stdout, linted.stderr);
        kinds.extend(
            objects(name)
                .iter()
                .map(|object| object["kind"].as_str().unwrap().to_owned()),
        );
    }
    let all: Vec<_> = kinds.iter().map(String::as_str).collect();
    assert_eq!(
        all,
        [
            "ConfigMap",
            "Deployment",
            "HTTPRoute",
            "HorizontalPodAutoscaler",
            "Ingress",
            "NetworkPolicy",
            "Pod",
            "PodDisruptionBudget",
            "PrometheusRule",
            "Service",
            "ServiceAccount",
            "ServiceMonitor",
            "StatefulSet",
        ]
    );
    let there: BTreeSet<_> = fs::read_dir(project(CHART).join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, EXAMPLES.map(|name| format!("{name}.yaml")).into());
}

#[test]
fn their_configuration_passes_check_config() {
    if !have_tools() {
        return;
    }
    for name in EXAMPLES {
        let objects = objects(name);
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("lab-a");
        fs::write(&secret, "a-token\n").unwrap();
        let config = config_of(&objects).replace("/run/secrets/jupyter/lab-a", &secret.display().to_string());
        let file = folder.path().join("gateway.toml");
        fs::write(&file, config).unwrap();
        let mut command = gateway_command();
        command.arg("check-config").arg("--config").arg(&file);
        let container = &workload(&objects)["spec"]["template"]["spec"]["initContainers"][0];
        for variable in container["env"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().unwrap();
            let value = match name {
                "JMG__STORE__URL" => "postgres://gateway:secret@database/gateway",
                _ => variable["value"].as_str().unwrap_or("a-secret"),
            };
            command.env(name, value);
        }
        let checked = ended(command.output().unwrap());
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
    }
}

#[tokio::test]
async fn probes_scrapes_services_and_ingresses_pass_the_host_check() {
    if !have_tools() {
        return;
    }
    let objects = objects("ingress-nginx");
    let config = config_of(&objects)
        .replace("token_env = \"LAB_A_TOKEN\"", "token = \"a\"")
        .replace("token_env = \"LAB_B_TOKEN\"", "token = \"b\"")
        .replace("otlp_endpoint", "#otlp_endpoint")
        .replace("metrics_listen = \"0.0.0.0:9090\"", "metrics_listen = \"127.0.0.1:0\"");
    let gateway = Gateway::configured(&config).await;
    let status = async |url: String, host: &str| {
        let request = reqwest::Client::new().get(url).header("host", host);
        request.send().await.unwrap().status()
    };

    let container = &workload(&objects)["spec"]["template"]["spec"]["containers"][0];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        let get = &container[probe]["httpGet"];
        let host = get["httpHeaders"][0]["value"].as_str().unwrap();
        let path = get["path"].as_str().unwrap();
        assert_eq!(status(gateway.url(path), host).await, StatusCode::OK, "{probe}");
    }
    let ingress = of_kind(&objects, "Ingress")[0]["spec"]["rules"][0]["host"]
        .as_str()
        .unwrap();
    for host in [
        ingress,
        "mcp-jupyter-mcp-gateway:8585",
        "mcp-jupyter-mcp-gateway.research.svc:8585",
        "mcp-jupyter-mcp-gateway.research.svc.cluster.local",
    ] {
        assert_eq!(status(gateway.url("/healthz"), host).await, StatusCode::OK, "{host}");
    }
    // What `helm test` calls.
    let test = of_kind(&objects, "Pod")[0]["spec"]["containers"][0]["args"][2]
        .as_str()
        .unwrap();
    assert_eq!(test, "http://mcp-jupyter-mcp-gateway.research.svc:8585/readyz");
    // Prometheus comes by the pod's address, and only its own port lets it in so.
    let metrics = gateway.metrics_url("/metrics");
    assert_eq!(status(metrics, "10.1.2.3:9090").await, StatusCode::OK);
    assert_eq!(
        status(gateway.url("/healthz"), "10.1.2.3:8585").await,
        StatusCode::FORBIDDEN
    );
    assert_eq!(status(gateway.url("/metrics"), ingress).await, StatusCode::NOT_FOUND);
}

#[test]
fn pods_have_no_rights() {
    if !have_tools() {
        return;
    }
    for name in EXAMPLES {
        let objects = objects(name);
        let pods = of_kind(&objects, "Pod")
            .into_iter()
            .chain([&workload(&objects)["spec"]["template"]]);
        for pod in pods {
            let spec = &pod["spec"];
            assert_eq!(spec["automountServiceAccountToken"], false, "{name}");
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name}");
            assert!(spec["securityContext"]["runAsUser"].is_u64(), "{name}");
            let containers = ["initContainers", "containers"].map(|key| spec[key].as_array());
            for container in containers.into_iter().flatten().flatten() {
                let security = &container["securityContext"];
                assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
                assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
                assert_eq!(security["capabilities"]["drop"][0], "ALL", "{name}");
            }
        }
    }
}

/// Values over those of an example, and words of the sentence by which they are refused.
const REFUSED: [(&str, &str, &str); 20] = [
    ("embedded", "replica: 2", "additional properties 'replica' not allowed"),
    (
        "embedded",
        "config: {http: {allowed_host: [x]}}",
        "additional properties 'allowed_host' not allowed",
    ),
    (
        "embedded",
        "config: {sessions: {idle_timeout: soon}}",
        "'soon' does not match pattern",
    ),
    (
        "embedded",
        "config: {servers: [{name: Lab A, url: http://lab}]}",
        "'Lab A' does not match pattern",
    ),
    (
        "embedded",
        "config: {tenants: [{servers: [lab-a]}]}",
        "missing property 'name'",
    ),
    ("embedded", "service: {port: 99999}", "maximum: got 99,999, want 65,535"),
    (
        "embedded",
        "store: {type: sqlite}",
        "value must be one of 'embedded', 'postgres', 'memory'",
    ),
    (
        "embedded",
        "secretEnv: {LAB_A_TOKEN: a-token}",
        "got string, want object",
    ),
    (
        "embedded",
        "config: {http: {listen: 0.0.0.0:80}}",
        "config.http.listen: the chart sets it",
    ),
    (
        "embedded",
        "config: {servers: []}",
        "config.servers: name at least one Jupyter server",
    ),
    (
        "embedded",
        "config: {auth: {tokens: []}}",
        "config.auth: nobody could log in",
    ),
    (
        "embedded",
        "config: {servers: [{name: lab-a, url: http://lab, token: abc}]}",
        "config.servers[0].token: a token does not belong into the values",
    ),
    (
        "embedded",
        "config: {servers: [{name: lab-a, url: http://lab, token_env: OTHER}]}",
        "add it to secretEnv, as `OTHER: {name: SECRET, key: KEY}`",
    ),
    (
        "embedded",
        "replicas: 2",
        "store.type is embedded; set store.type to postgres, or replicas to 1",
    ),
    (
        "ingress-nginx",
        "stickiness: ''",
        "stickiness: sessions of the MCP protocol up to 2025-11-25",
    ),
    (
        "ingress-nginx",
        "stickiness: client-ip",
        "client-ip is done by the Service",
    ),
    (
        "ingress-nginx",
        "config: {http: {trusted_proxies: []}}",
        "config.http.trusted_proxies: name the addresses",
    ),
    (
        "ingress-nginx",
        "store: {postgres: {secretName: ''}}",
        "store.postgres.secretName: name the Secret",
    ),
    (
        "traefik",
        "podDisruptionBudget: {enabled: true}",
        "with one replica there is nothing to keep",
    ),
    (
        "gateway-api",
        "terminationGracePeriodSeconds: 20",
        "set it to 40 or more, else running calls are cut off",
    ),
];

#[test]
fn what_cannot_work_is_refused_with_a_sentence() {
    if !have_tools() {
        return;
    }
    for (name, values, words) in REFUSED {
        let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        file.write_all(values.as_bytes()).unwrap();
        let path = file.path().display().to_string();
        let refused = helm(&["template", "mcp", CHART, "--values", &example(name), "--values", &path]);
        assert_eq!(refused.code, Some(1), "{values}: {}", refused.stdout);
        assert!(refused.stderr.contains(words), "{values}: {}", refused.stderr);
    }
}
