//! The tools that a request offers, and how an edit or a command is asked for with them.
//!
//! Which tools a client offers depends on the client and on the model it believes in (codex: `exec_command` and a
//! freeform `apply_patch` for one model, a JavaScript `exec` for another, no patch tool for an unknown one), so that a
//! script says *what* is to happen and this module says *how*. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::script::Item;

/// Names under which clients offer a shell, best first.
const SHELLS: [&str; 8] =
    ["exec_command", "shell_command", "bash", "Bash", "Shell", "shell", "run_command", "local_shell"];
/// Names under which clients offer to write a whole file.
const WRITERS: [&str; 6] = ["write", "Write", "write_file", "WriteFile", "write_to_file", "create_file"];

/// How long codex waits for a command's output, in milliseconds: 10000 unless told, and no longer than this.
const YIELD: &str = "yield_time_ms";
const LONGEST_YIELD: u32 = 30_000;

/// The tools of one request, by name.
#[derive(Debug, Default)]
pub(super) struct Offer(BTreeMap<String, Tool>);

#[derive(Debug)]
struct Tool {
    is_custom: bool,
    parameters: Value,
    namespace: Option<String>,
}

impl Offer {
    /// Reads the `tools` of a request body, also those that codex sends as an `additional_tools` input item.
    pub(super) fn of(request: &Value) -> Self {
        let mut offer = Self::default();
        let listed = items(&request["tools"]);
        let additional = items(&request["input"]).filter(|item| item["type"] == "additional_tools");
        for tool in listed.chain(additional.flat_map(|item| items(&item["tools"]))) {
            offer.add(tool, None);
        }
        offer
    }

    /// The item in the shape of this offer: edits and commands become tool calls, the rest stays.
    pub(super) fn adapt(&self, item: &Item) -> Item {
        match item {
            Item::Edit { path, content } => self.edit(path, content),
            Item::Shell(command) => self.shell(command),
            other => other.clone(),
        }
    }

    fn add(&mut self, tool: &Value, namespace: Option<&str>) {
        let kind = tool["type"].as_str().unwrap_or_default();
        if kind == "namespace" {
            for inner in items(&tool["tools"]) {
                self.add(inner, tool["name"].as_str());
            }
            return;
        }
        // Chat-style tools wrap the declaration once more.
        let declaration = if tool["function"].is_object() { &tool["function"] } else { tool };
        let name = declaration["name"].as_str().unwrap_or(kind).to_owned();
        let parameters = declaration["parameters"].clone();
        self.0.insert(name, Tool { is_custom: kind == "custom", parameters, namespace: namespace.map(str::to_owned) });
    }

    fn edit(&self, path: &str, content: &str) -> Item {
        let patch = patch_adding(path, content);
        if let Some(tool) = self.0.get("apply_patch") {
            return if tool.is_custom {
                Item::Custom { name: "apply_patch".to_owned(), input: patch }
            } else {
                tool.call("apply_patch", json!({"input": patch}))
            };
        }
        if self.0.contains_key("exec") {
            return code_mode(&format!("tools.apply_patch({})", json!(patch)));
        }
        if let Some((name, tool)) = WRITERS.iter().find_map(|name| Some((name, self.0.get(*name)?))) {
            let path_key = tool.property(&["filePath", "file_path", "path", "TargetFile"]).unwrap_or("path");
            let content_key = tool.property(&["content", "contents", "file_text", "CodeContent"]).unwrap_or("content");
            return tool.call(name, json!({path_key: path, content_key: content}));
        }
        self.shell(&format!("printf %s {} > {}", quoted(content), quoted(path)))
    }

    fn shell(&self, command: &str) -> Item {
        if let Some((name, tool)) = SHELLS.iter().find_map(|name| Some((name, self.0.get(*name)?))) {
            return tool.call(name, Value::Object(tool.shell_arguments(name, command)));
        }
        if self.0.contains_key("exec") {
            return code_mode(&format!("tools.exec_command({{cmd: {}}})", json!(command)));
        }
        let offered = self.0.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        Item::Message {
            text: format!("the provider's script needs a shell, offered are: {offered}"),
            commentary: false,
        }
    }
}

impl Tool {
    fn call(&self, name: &str, arguments: Value) -> Item {
        Item::Call { name: name.to_owned(), arguments, namespace: self.namespace.clone() }
    }

    fn property<'a>(&self, candidates: &[&'a str]) -> Option<&'a str> {
        candidates.iter().copied().find(|key| self.parameters["properties"][*key].is_object())
    }

    /// The command, and something of the right type for every other required argument.
    fn shell_arguments(&self, name: &str, command: &str) -> Map<String, Value> {
        let key = self.property(&["cmd", "command", "CommandLine"]).unwrap_or("command");
        let is_argv = self.parameters["properties"][key]["type"] == "array";
        let value = if is_argv { json!(["bash", "-c", command]) } else { json!(command) };
        let mut arguments = Map::from_iter([(key.to_owned(), value)]);
        // codex gives a longer command back half done, and the next step would be played beside it.
        if self.property(&[YIELD]).is_some() {
            arguments.insert(YIELD.to_owned(), json!(LONGEST_YIELD));
        }
        for required in items(&self.parameters["required"]).filter_map(Value::as_str) {
            let filler = match self.parameters["properties"][required]["type"].as_str() {
                Some("boolean") => json!(false),
                Some("integer" | "number") => json!(10),
                _ => json!(format!("run {name}")),
            };
            arguments.entry(required).or_insert(filler);
        }
        arguments
    }
}

/// codex's code mode: one freeform tool that takes JavaScript.
fn code_mode(expression: &str) -> Item {
    let input = format!("const r = await {expression};\ntext(JSON.stringify(r));\n");
    Item::Custom { name: "exec".to_owned(), input }
}

fn patch_adding(path: &str, content: &str) -> String {
    let added: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit() -> Item {
        Item::Edit { path: "a.txt".to_owned(), content: "one\ntwo\n".to_owned() }
    }

    const PATCH: &str = "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch\n";

    #[test]
    fn an_edit_uses_the_best_tool_that_is_offered() {
        let shell = json!({"type": "function", "name": "exec_command", "parameters": {
            "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}});
        let custom = |name: &str| json!({"type": "custom", "name": name});
        let writer = json!({"type": "function", "function": {"name": "write", "parameters": {
            "properties": {"filePath": {"type": "string"}, "content": {"type": "string"}}}}});
        let call = |name: &str, arguments| Item::Call { name: name.to_owned(), arguments, namespace: None };
        for (tools, expect) in [
            (
                json!({"tools": [shell, custom("apply_patch")]}),
                Item::Custom { name: "apply_patch".to_owned(), input: PATCH.to_owned() },
            ),
            (
                json!({"input": [{"type": "additional_tools", "tools": [custom("exec")]}]}),
                code_mode(&format!("tools.apply_patch({})", json!(PATCH))),
            ),
            (json!({"tools": [writer, shell]}), call("write", json!({"filePath": "a.txt", "content": "one\ntwo\n"}))),
            (json!({"tools": [shell]}), call("exec_command", json!({"cmd": "printf %s 'one\ntwo\n' > 'a.txt'"}))),
        ] {
            assert_eq!(Offer::of(&tools).adapt(&edit()), expect, "{tools}");
        }
    }

    #[test]
    fn a_command_fills_in_what_the_tool_requires_and_waits_as_long_as_it_can() {
        let tool = json!({"type": "namespace", "name": "os", "tools": [{"type": "function", "name": "shell", "parameters": {
            "properties": {"command": {"type": "array"}, "timeout": {"type": "integer"}, "why": {"type": "string"},
                "yield_time_ms": {"type": "number"}},
            "required": ["command", "timeout", "why"]}}]});
        let expect = Item::Call {
            name: "shell".to_owned(),
            arguments: json!({"command": ["bash", "-c", "ls"], "timeout": 10, "why": "run shell",
                "yield_time_ms": 30_000}),
            namespace: Some("os".to_owned()),
        };
        assert_eq!(Offer::of(&json!({"tools": [tool]})).adapt(&Item::Shell("ls".to_owned())), expect);
    }

    #[test]
    fn without_any_tool_the_answer_says_so() {
        let adapted = Offer::of(&json!({"tools": [{"type": "custom", "name": "think"}]})).adapt(&edit());
        assert!(format!("{adapted:?}").contains("offered are: think"), "{adapted:?}");
    }
}
