//! Event types from the webhooks of an OpenAPI document, in JSON and in YAML.
//!
//! Never: a change by a dry run.

use serde_json::{Value, json};

use crate::support::Server;

const PATH: &str = "/event-type/import/openapi";

const YAML: &str = r##"
openapi: 3.1.0
info: {title: Pets, version: "1"}
webhooks:
  pet.new:
    post:
      summary: A pet came
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Pet"}
            example: {name: Rex, legs: 4}
      responses:
        200: {description: ok}
  pet.gone:
    post:
      description: A pet went
      deprecated: true
components:
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        name: {type: string}
        friend: {$ref: "#/components/schemas/Pet"}
"##;

async fn names(server: &Server) -> Vec<String> {
    let list = server.get("/event-type").await.expect(200);
    let rows = list["data"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn sorted(list: &Value) -> Vec<&str> {
    let mut names: Vec<_> = list.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn webhooks_of_a_document_become_event_types() {
    let server = Server::start().await;
    let own = json!({"name": "own", "description": "d", "featureFlag": "f"});
    server.post("/event-type", &own).await.expect(201);
    let asked = json!({"specRaw": YAML, "dryRun": true, "replaceAll": true});
    let data = server.post(PATH, &asked).await.expect(200)["data"].take();
    assert_eq!((&data["modified"], &data["archived"]), (&json!([]), &json!(["own"])));
    assert_eq!(data["to_modify"].as_array().unwrap().len(), 2);
    let gone = data["to_modify"].as_array().unwrap().iter().find(|one| one["name"] == "pet.gone");
    let expected = json!({"name": "pet.gone", "description": "A pet went", "schemas": null, "deprecated": true});
    assert_eq!(gone, Some(&expected));
    assert_eq!(names(&server).await, ["own"], "a dry run changes nothing");

    let data = server.post(&format!("{PATH}/"), &json!({"specRaw": YAML})).await.expect(200);
    assert_eq!(sorted(&data["data"]["modified"]), ["pet.gone", "pet.new"]);
    assert!(data["data"]["to_modify"].is_null());
    assert_eq!(names(&server).await, ["own", "pet.gone", "pet.new"]);
    let made = server.get("/event-type/pet.new").await.expect(200);
    assert_eq!(made["description"], "A pet came");
    let schema = &made["schemas"]["1"];
    assert_eq!(schema["properties"]["friend"], json!({"$ref": "#/definitions/Pet"}));
    assert_eq!(schema["definitions"]["Pet"]["required"], json!(["name"]));
    assert_eq!(schema["examples"], json!([{"name": "Rex", "legs": 4}]));

    let again = server.post(PATH, &json!({"specRaw": YAML})).await.expect(200);
    assert_eq!(again["data"]["modified"], json!([]), "nothing is different");
    server.delete("/event-type/pet.new").await.expect(204);
    let back = json!({"specRaw": YAML, "replaceAll": true});
    let data = server.post(PATH, &back).await.expect(200);
    assert_eq!(sorted(&data["data"]["modified"]), ["own", "pet.new"], "one back, one archived");
    assert_eq!(names(&server).await, ["pet.gone", "pet.new"]);
    let kept = server.get("/event-type/own").await.expect(200);
    assert_eq!((&kept["archived"], &kept["featureFlag"]), (&json!(true), &json!("f")));
}

#[tokio::test]
async fn a_document_is_json_or_yaml_and_given_once() {
    let server = Server::start().await;
    let spec = json!({"x-webhooks": {"t.a": {"post": {"description": "d"}}}});
    let data = server.post(PATH, &json!({"spec": spec})).await.expect(200);
    assert_eq!(data["data"]["modified"], json!(["t.a"]));
    for asked in [json!({}), json!({"spec": spec, "specRaw": spec.to_string()})] {
        assert_eq!(server.post(PATH, &asked).await.expect(400)["code"], "generic_error");
    }
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
    for raw in ["{", "a: [", "", "text", bomb, &"[".repeat(100_000), "webhooks: {a b: {post: {}}}"]
    {
        let refused = server.post(PATH, &json!({"specRaw": raw})).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"][1], "specRaw", "{refused}");
    }
    for (raw, said) in [
        ("{\"a\": 1,\n \"b\" 2}", "as JSON it breaks off at line 2, column 6"),
        ("a: 1\nb: [", "as YAML it cannot be read on from line "),
        ("a: 1", "has neither `webhooks` nor `x-webhooks`"),
    ] {
        let refused = server.post(PATH, &json!({"specRaw": raw})).await.expect(422);
        let said_now = refused["detail"][0]["msg"].as_str().unwrap();
        assert!(said_now.contains(said), "{refused}");
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "specRaw"]));
    }
    let wrong = "webhooks: {t.b: {post: {requestBody: {content: {application/json: {schema: {type: x}}}}}}}";
    let refused = server.post(PATH, &json!({"specRaw": wrong})).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "specRaw", "t.b", "schemas", "1"]));
    let schema = json!({"type": "nonsense"});
    let content = json!({"application/json": {"schema": schema}});
    let spec = json!({"webhooks": {"t.b": {"post": {"requestBody": {"content": content}}}}});
    let refused = server.post(PATH, &json!({"spec": spec})).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "spec", "t.b", "schemas", "1"]));
    assert_eq!(names(&server).await, ["t.a"]);
}
