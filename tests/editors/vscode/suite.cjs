// The extension in VS Code's extension host: every command, the jobs view, briefs, partial applies, conflicts, trust.

const assert = require("node:assert");
const { execFile } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const kit = require("./kit.cjs");

const { fileOf, find, inView, isShown, jobNamed, lines } = kit;
const { asked, bar, home, openText, person, recorded, run, script, toasts, told, until } = kit;

/** The processes that this extension host started as servers. */
function serverPids() {
  const pids = fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  const stat = (pid) => {
    try {
      return fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    } catch {
      return "";
    }
  };
  const isServer = (pid) => stat(pid).match(/^[0-9]+ \(pactify-lsp\) [^Z] ([0-9]+)/)?.[1] === String(process.pid);
  return pids.filter(isServer).map(Number);
}
const serverPid = () => serverPids()[0];

function tests() {
  const root = vscode.workspace.workspaceFolders[0].uri;
  const file = (name) => path.join(root.fsPath, name);
  const read = (name) => (fs.existsSync(file(name)) ? fs.readFileSync(file(name), "utf8") : undefined);
  const go = process.env.PACTIFY_GO;
  const readme = "# Sample\n\nA small program.\n";
  const result = "# Sample\n\nA small program that greets.\n";

  /** Starts a job as another person would, in a terminal; gives its id. */
  const elsewhere = (brief, ...options) =>
    new Promise((resolve, reject) => {
      const pactify = path.join(path.dirname(process.env.PACTIFY_LSP), "pactify");
      const all = ["sub", "run", "--detach", "--repo", root.fsPath, "--brief", "-", ...options];
      const end = (error, id, said) => (error ? reject(new Error(`${error.message}\n${said}`)) : resolve(id.trim()));
      execFile(pactify, all, { timeout: 60_000 }, end).stdin.end(brief);
    });

  let tree;
  before(async () => (tree = await kit.start()));

  it("registers its commands beside the server's, and every command of the manifest", async () => {
    const commands = await until("the server's commands", 60, async () => {
      const all = await vscode.commands.getCommands(true);
      return all.includes("pactify.delegate") && all;
    });
    const { contributes } = vscode.extensions.getExtension("pactify.pactify").packageJSON;
    const promised = contributes.commands.map(({ command }) => command).sort();
    assert.deepStrictEqual(commands.filter((name) => name.startsWith("pactify.ui.")).sort(), promised);
    for (const { command } of Object.values(contributes.menus).flat()) assert.ok(promised.includes(command), command);
  });

  it("tells what the doctor finds", async () => {
    person.pick = () => undefined;
    await run("doctor");
    assert.ok(told("codex"), JSON.stringify(asked));
    person.pick = (items) => items[0];
  });

  it("delegates, and shows the job in a toast and in the view until it is over", async () => {
    person.words = script(
      "Greet in the README",
      { say: "Looking around." },
      { waitFor: [go, 60] },
      { write: { path: "README.md", content: result } },
      { write: { path: "greeting.txt", content: "hello\n" } },
      { write: { path: ".vscode/settings.json", content: "{}\n" } },
    );
    await run("delegate");
    const toast = await until("a toast", 60, () => toasts.find(({ title }) => title === "codex: Greet in the README"));
    assert.ok(toast.cancellable);
    await until("what the agent does", 60, () => toast.messages.includes("Looking around."));
    await inView("Greet in the README", "just now");
    assert.match((await lines())[0], /^Working \| 1/);
    fs.writeFileSync(go, "");
    await until("the toast goes", 60, () => toast.isOver);
    await until("the end in words", 60, () => told("codex: Greet in the README: changed 3 files, +3 −1, 1 sensitive"));
    assert.strictEqual(read("README.md"), readme, "nothing is in the checkout");
  });

  it("shows what a job changed below it, sensitive files first, with its parts", async () => {
    await inView("Greet in the README", "3 files");
    const shown = await lines();
    assert.match(shown[0], /^To Review/);
    assert.match(shown[2], /settings\.json \| \.vscode · acts by itself/);
    assert.ok(shown.some((line) => /A small program that greets\. \| line 3, \+1 −1/.test(line)), shown.join("\n"));
    const { accessibilityInformation, contextValue } = tree.getTreeItem(await jobNamed("Greet in the README"));
    assert.match(accessibilityInformation.label, /^codex: Greet in the README, succeeded/);
    assert.strictEqual(contextValue, "job over changes result");
  });

  it("says the same to who listens", async () => {
    const item = async (node) => {
      const { accessibilityInformation, checkboxState } = tree.getTreeItem(await node);
      return [accessibilityInformation.label, checkboxState.accessibilityInformation.label];
    };
    const settings = ".vscode/settings.json, added, .vscode, acts by itself in your checkout";
    const ofFile = await item(fileOf("Greet in the README", ".vscode/settings.json"));
    assert.deepStrictEqual(ofFile, [settings, "take .vscode/settings.json"]);
    const part = find((node) => node.kind === "part", await jobNamed("Greet in the README"));
    assert.deepStrictEqual(await item(part), ["line 3, +1 −1: A small program that greets.", "take line 3, +1 −1"]);
    const said = () => bar["pactify.jobs"].accessibilityInformation.label;
    await until("the status bar", 60, () => said() === "Pactify: 0 running, 0 waiting for you, 1 to review");
  });

  it("previews all files in one diff of documents that are not files", async () => {
    await run("preview");
    const tab = () => vscode.window.tabGroups.activeTabGroup.activeTab;
    await until("the diff", 60, () => tab()?.label.startsWith("Pactify: Greet in the README"));
    const is = (side) => (uri) => uri.scheme === "pactify" && /README/.test(uri.path) && uri.query.includes(`"${side}"`);
    await until("the base", 60, () => openText(is("base")) === readme);
    await until("the result", 60, () => openText(is("result")) === result);
  });

  it("refuses to overwrite unsaved text, and offers to save it", async () => {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(root, "README.md"));
    const editor = await vscode.window.showTextDocument(document);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "mine "));
    person.buttons = ["Apply All"];
    await run("apply");
    const question = told("Apply 3 files of “Greet in the README”");
    assert.match(question, /act by themselves[^]*\.vscode\/settings\.json/);
    assert.ok(told("Nothing of “Greet in the README” was applied yet: 1 file of it has unsaved text.\nREADME.md"));
    assert.deepStrictEqual([read("README.md"), read("greeting.txt")], [readme, undefined]);
    await vscode.commands.executeCommand("workbench.action.files.revert");
    assert.ok(!document.isDirty);
  });

  it("opens one file with lenses above its parts, and marks it as reviewed", async () => {
    const node = await fileOf("Greet in the README", "README.md");
    await run("openFile", node);
    const uri = await until("the diff of one file", 60, () => {
      const shown = vscode.window.activeTextEditor?.document.uri;
      return shown?.scheme === "pactify" && shown.path === "/README.md" && shown.query.includes('"result"') && shown;
    });
    assert.deepStrictEqual([uri.scheme, uri.path], ["pactify", "/README.md"]);
    const titles = async () => {
      const lenses = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", uri);
      return lenses.map(({ command }) => command.title).join("; ");
    };
    const ofFile = "$(eye-closed) Mark as Reviewed; $(check-all) Apply File";
    assert.strictEqual(await titles(), `${ofFile}; $(check) Apply line 3, +1 −1; $(comment) Comment…`);
    await run("reviewed");
    assert.match(await titles(), /^\$\(eye\) Reviewed/);
    assert.ok((await lines()).some((line) => line.includes("README.md | ✓ reviewed")));
  });

  it("takes the part at the cursor, and takes it back", async () => {
    const editor = vscode.window.activeTextEditor;
    editor.selection = new vscode.Selection(2, 0, 2, 0);
    await run("applyHunk");
    assert.ok(told("Pactify: applied 1 file of “Greet in the README”."), JSON.stringify(asked));
    assert.deepStrictEqual([read("README.md"), read("greeting.txt")], [result, undefined]);
    await until("the part as taken", 60, () => isShown("+1 −1 · applied"));
    await run("undo");
    assert.strictEqual(read("README.md"), readme);
    await until("the part as open", 60, async () => !(await isShown("· applied")));
  });

  it("applies the checked files and parts", async () => {
    tree.check(await fileOf("Greet in the README", "greeting.txt"), true);
    const part = await find((node) => node.kind === "part", await jobNamed("Greet in the README"));
    tree.check(part, true);
    assert.strictEqual(tree.getTreeItem(part).checkboxState.state, vscode.TreeItemCheckboxState.Checked);
    assert.match(tree.getTreeItem(await jobNamed("Greet in the README")).contextValue, /chosen/);
    person.buttons = ["Apply Selected"];
    await run("applySelected");
    assert.match(told("Apply 2 files of “Greet in the README”"), /Chosen:\ngreeting\.txt\nREADME\.md/);
    assert.deepStrictEqual([read("README.md"), read("greeting.txt")], [result, "hello\n"]);
    assert.strictEqual(read(".vscode/settings.json"), undefined);
  });

  it("shows a conflict with its path, three ways, and writes nothing", async () => {
    fs.mkdirSync(file(".vscode"), { recursive: true });
    fs.writeFileSync(file(".vscode/settings.json"), '{"mine": 1}\n');
    person.buttons = ["Apply All", "Show the Path"];
    await run("preview");
    await run("apply");
    const error = await until("the refusal", 60, () => told("(applyConflict)"));
    assert.ok(error.startsWith("Pactify: "), error);
    assert.strictEqual(read(".vscode/settings.json"), '{"mine": 1}\n');
    const labels = () => vscode.window.tabGroups.all.map(({ activeTab }) => activeTab?.label).join("; ");
    await until("three ways", 60, () => /the job's; settings\.json: base ↔ yours/.test(labels()));
    await until("what is there", 60, () => openText((uri) => uri.query.includes('"current"')) === '{"mine": 1}\n');
    person.buttons = [];
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.commands.executeCommand("workbench.action.joinAllGroups");
  });

  it("resumes a job with a comment on a part, and quotes it", async () => {
    const part = await find((node) => node.kind === "part", await jobNamed("Greet in the README"));
    person.words = script("Greet louder", { write: { path: "README.md", content: `${result}\nHELLO\n` } });
    await run("comment", part);
    const toast = await until("the toast", 60, () => toasts.filter(({ title }) => title.includes("Greet in")).at(1));
    await until("the toast goes", 60, () => toast.isOver);
    await inView("Greet in the README", "+");
    const message = fs.readdirSync(path.join(home, "jobs")).map((id) => {
      const sent = path.join(home, "jobs", id, "message");
      return fs.existsSync(sent) ? fs.readFileSync(sent, "utf8") : "";
    });
    assert.match(message.join(""), /^About README\.md, line 3, \+1 −1 of your result:\n\n```diff\n-A small/);
  });

  it("exports, tells how a job stands, and discards when that is confirmed", async () => {
    const job = await jobNamed("Greet in the README");
    await run("export", job);
    await until("the patch", 60, () => vscode.window.activeTextEditor?.document.getText().startsWith("diff --git"));
    person.pick = (items) => items[1];
    person.words = "kept/greeting";
    await run("export", job);
    assert.ok(told("“Greet in the README” is on the branch kept/greeting."), JSON.stringify(asked));
    person.pick = (items) => items[0];
    await run("details", job);
    await until("the details", 60, () => /^# codex: Greet in/.test(vscode.window.activeTextEditor?.document.getText()));
    await run("discard", job);
    assert.ok(told("Discard what “Greet in the README” did?"));
    assert.ok(await jobNamed("Greet in the README"), "nobody confirmed it");
    person.buttons = ["Discard"];
    await run("discard", job);
    await until("the view forgets it", 60, async () => (await jobNamed("Greet in the README")) === undefined);
    person.buttons = [];
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  it("cancels from the toast, and retries with other options", async () => {
    person.words = script("Wait for ever", { say: "Waiting." }, "hang");
    await run("delegate");
    const toast = await until("a toast", 60, () => toasts.find(({ title }) => title === "codex: Wait for ever"));
    await until("it runs", 60, () => toast.messages.includes("Waiting."));
    toast.cancel();
    await until("it is over", 60, () => toast.isOver);
    await until("the end in words", 60, () => told("codex: Wait for ever: cancelled"));
    const wanted = ["Only Look", "Your Own, Too"];
    person.pick = (items) => items.find(({ label }) => wanted.includes(label)) ?? items[0];
    person.form = (question) => (question.startsWith("With which model") ? "another-model" : "");
    const first = (await jobNamed("Wait for ever")).job.id;
    await run("retry", await jobNamed("Wait for ever"));
    assert.match(told("codex 0.171.0 · default"), /confined|logged in/);
    const again = await until("the other toast", 60, () => toasts.filter(({ title }) => title.includes("for ever"))[1]);
    await until("it runs", 60, () => again.messages.includes("Waiting."));
    const job = await find((node) => node.job?.access === "readOnly" && node.job.state !== "finished");
    const { access, model, retryOf, withUserConfig } = recorded(job.job.id);
    const expected = { access: "readOnly", model: "another-model", retryOf: first, withUserConfig: true };
    assert.deepStrictEqual({ access, model, retryOf, withUserConfig }, expected);
    await run("cancel", job);
    await until("it is over", 60, () => again.isOver);
    person.pick = (items) => items[0];
    person.form = () => "";
  });

  it("delegates a brief from its lens, selected lines, and the fix of a problem", async () => {
    person.words = "";
    await run("newBrief");
    const editor = vscode.window.activeTextEditor;
    assert.match(editor.document.fileName, /task\.brief\.md$/);
    assert.ok(editor.document.isUntitled && editor.document.getText().startsWith("# What to do"));
    const text = script("# From a brief", { say: "Read." });
    await editor.edit((edit) => edit.replace(new vscode.Range(0, 0, 99, 0), text));
    const lenses = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", editor.document.uri);
    assert.deepStrictEqual(
      lenses.map(({ command }) => command.title),
      ["$(rocket) Delegate", "$(settings) as configured"],
    );
    await run("delegate");
    await inView("From a brief", "no changes");
    assert.notStrictEqual(vscode.window.activeTextEditor?.document, editor.document, "it is off the screen");

    const shown = await vscode.window.showTextDocument(vscode.Uri.joinPath(root, "README.md"));
    shown.selection = new vscode.Selection(0, 0, 2, 3);
    person.words = "Explain";
    await run("delegateSelection");
    const about = async (title) => {
      await inView(title, "");
      await run("details", await jobNamed(title));
      return until("the brief", 60, () => {
        const told = vscode.window.activeTextEditor?.document.getText() ?? "";
        return told.includes(`: ${title}`) && told;
      });
    };
    assert.match(await about("Explain"), /This is about README\.md, lines 1–3:\n\n```markdown\n# Sample/);

    fs.mkdirSync(file(".pactify/briefs"), { recursive: true });
    fs.writeFileSync(file(".pactify/briefs/review.md"), "Review this.");
    for (const [wanted, begun] of [["$(edit) Write a Brief…", "Explain\n\n"], ["review", "Review this.\n\n"]]) {
      await vscode.window.showTextDocument(vscode.Uri.joinPath(root, "README.md"));
      person.pick = (items) => items.find(({ label }) => label === wanted);
      await run("delegateSelection");
      const { document } = vscode.window.activeTextEditor;
      assert.ok(document.getText().startsWith(`${begun}This is about README.md, lines 1–3:`), document.getText());
      const [, { command }] = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", document.uri);
      assert.strictEqual(command.title, "$(settings) with unsaved text");
      await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    }
    fs.rmSync(file(".pactify"), { recursive: true });

    person.words = "";
    person.pick = (items) => {
      const history = items.findIndex(({ label }) => label === "earlier briefs");
      return items.find(({ label }, at) => history !== -1 && at > history && label === "From a brief");
    };
    await vscode.window.showTextDocument(vscode.Uri.joinPath(root, "README.md"));
    await run("delegate");
    const { document: earlier } = vscode.window.activeTextEditor;
    assert.ok(earlier.isUntitled && earlier.getText().startsWith(text.trimEnd()), earlier.getText());
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    person.pick = (items) => items[0];

    const problems = vscode.languages.createDiagnosticCollection("test");
    const range = new vscode.Range(2, 2, 2, 7);
    problems.set(vscode.Uri.joinPath(root, "README.md"), [new vscode.Diagnostic(range, "too small")]);
    const place = [vscode.Uri.joinPath(root, "README.md"), range];
    const actions = await vscode.commands.executeCommand("vscode.executeCodeActionProvider", ...place);
    const fix = actions.find(({ title }) => title === "Delegate Fix for This Problem");
    await vscode.commands.executeCommand(fix.command.command, ...fix.command.arguments);
    assert.match(await about("Fix: too small"), /This is about README\.md, line 3:\n\ntoo small\n/);
    problems.dispose();
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  it("answers what an agent asks, from the view, with all of it in sight", async () => {
    const command = `echo ${"a".repeat(500)}; rm -rf ~`;
    const ask = { title: "May I?", input: { command }, then: [{ say: "Thanks." }] };
    person.words = script("Ask me", { acp: { ask } });
    const id = await elsewhere(person.words, "asker", "--permissions", "ask");
    await inView("Ask me", "waits for you (");
    assert.strictEqual((await jobNamed("Ask me")).job.id, id);
    assert.match((await lines())[0], /^Needs You \| 1/);
    const waiting = () => [tree.view.badge?.value, bar["pactify.jobs"].text, bar["pactify.jobs"].backgroundColor?.id];
    assert.deepStrictEqual(waiting(), [1, "$(bell-dot) Pactify: 1 waiting for you", "statusBarItem.warningBackground"]);
    assert.match(bar["pactify.jobs"].accessibilityInformation.label, /, 1 waiting for you, /);
    const messages = () => asked.filter((line) => line.startsWith("asker: Ask me waits for you"));
    let shown;
    person.pick = (items) => {
      const { document } = vscode.window.activeTextEditor;
      shown = [document.getText(), vscode.workspace.getConfiguration("editor", document).get("wordWrap")];
      return items.find(({ label }) => label === "allow once");
    };
    await run("answer", await jobNamed("Ask me"));
    assert.deepStrictEqual(shown, [command, "on"], "no end of it is out of sight");
    await until("the end", 60, async () => (await jobNamed("Ask me")).job.state === "finished");
    await until("nothing that waits", 60, () => waiting()[1] === "$(rocket) Pactify");
    assert.deepStrictEqual(waiting(), [undefined, "$(rocket) Pactify", undefined]);
    assert.deepStrictEqual(messages(), [], "it is somebody else's, and its person is asked elsewhere");

    person.words = script("Ask once more", { acp: { ask: { title: "And now?", then: [{ say: "Thanks again." }] } } });
    person.buttons = ["Answer…"];
    await run("resume", await jobNamed("Ask me"));
    await until("the question of a job of one's own", 60, () => messages().length > 0);
    await until("the end, by its button", 60, () => told("asker: Ask me: "));
    assert.strictEqual((await jobNamed("Ask me")).job.waiting, undefined);
    assert.strictEqual(messages().length, 1, JSON.stringify(messages()));
    assert.match(messages()[0], /: And now\?$/);
    person.buttons = [];
    person.pick = (items) => items[0];
  });

  it("starts a job with what was chosen in the form, step by step and back, and asks once what that asks", async () => {
    const title = "Choose for me";
    person.words = "";
    await run("newBrief");
    const editor = vscode.window.activeTextEditor;
    const text = script(title, { acp: { ask: { title: "May I, too?", then: [{ say: "Thanks." }] } } });
    await editor.edit((edit) => edit.replace(new vscode.Range(0, 0, 99, 0), text));
    const questions = [];
    const wanted = ["asker", "Change Files", "You, Asked Here", "With Uncommitted Changes", "Nothing"];
    person.form = (question) => (question.startsWith("With which model") ? "other-model" : "");
    person.pick = (items, { placeholder }) => {
      questions.push(placeholder.split("?")[0]);
      if (questions.length === 3) return "back";
      return items.find(({ label }) => wanted.includes(label)) ?? items[0];
    };
    await run("briefOptions");
    const [model, access] = ["With which model", "What may it do"];
    const begin = ["Who does it", model, access, model, access, "Who answers what it asks"];
    assert.deepStrictEqual(questions.slice(0, begin.length), begin);
    assert.deepStrictEqual(questions.slice(-2), ["What does its tree start as", "What does its result have to pass"]);
    const [, { command }] = await vscode.commands.executeCommand("vscode.executeCodeLensProvider", editor.document.uri);
    const said = "asker · other-model · may write · asks you · with uncommitted changes · not verified";
    assert.strictEqual(command.title, `$(settings) ${said}`);

    person.form = () => "";
    person.buttons = ["Answer…"];
    person.pick = (items) => items.find(({ label }) => label === "allow once") ?? items[0];
    await run("delegate");
    await until("the end, by its button", 60, () => told(`asker: ${title}: `));
    const messages = asked.filter((line) => line.startsWith(`asker: ${title} waits for you`));
    assert.strictEqual(messages.length, 1, JSON.stringify(messages));
    const first = (await jobNamed(title)).job.id;
    const chosen = (id) => {
      const { harness, model, access, permissions } = recorded(id);
      return { harness, model, access, permissions };
    };
    const expected = { harness: "asker", model: "other-model", access: "write", permissions: "ask" };
    assert.deepStrictEqual([chosen(first), recorded(first).noVerify], [expected, true]);

    person.buttons = [];
    person.pick = (items) => items.find(({ label }) => label.startsWith("Nobody: ")) ?? items[0];
    await run("retry", await jobNamed(title));
    const again = await until("the other job", 60, () => find(({ job }) => job?.title === title && job.id !== first));
    assert.deepStrictEqual(chosen(again.job.id), { ...expected, permissions: "allow" });
    await until("its end", 60, () => asked.filter((line) => line.startsWith(`asker: ${title}: `)).length > 1);
    assert.strictEqual(asked.filter((line) => line.startsWith(`asker: ${title} waits for you`)).length, 1);
    person.pick = (items) => items[0];
  });

  it("has an agent look in the checkout itself", async () => {
    const questions = [];
    person.words = script("Look around here", { say: "Looked." });
    person.pick = (items, { placeholder }) => {
      questions.push(placeholder);
      const isWanted = ({ act, label }) => act === "options" || label === "Only Look, in the Checkout";
      return items.find(isWanted) ?? items[0];
    };
    await run("delegate");
    await until("the end in words", 60, () => told("codex: Look around here: finished"));
    const { id, inPlace, outcome } = (await jobNamed("Look around here")).job;
    assert.deepStrictEqual([inPlace, outcome, recorded(id).place], [true, "succeeded", "checkout"]);
    assert.ok(!questions.some((question) => /answers|start as|have to pass/.test(question)), questions.join());
    person.pick = (items) => items[0];
  });

  it("keeps what was typed for a job that does not start", async () => {
    const editor = () => vscode.window.activeTextEditor?.document;
    const typed = async (text) => {
      const { fileName, isUntitled } = await until("a brief", 60, () => editor()?.getText() === text && editor());
      assert.ok(isUntitled && fileName.endsWith(".brief.md"), fileName);
      await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    };
    const half = "Half a thought:\n\tindented";
    person.words = half;
    person.pick = () => undefined;
    await run("delegate");
    person.words = "";
    person.pick = (items) => items.find(({ label }) => label === "$(edit) Write a Brief…");
    await run("delegate");
    await typed(half);
    person.pick = () => undefined;
    await run("delegate");
    assert.match(asked.at(-1), /^\$\(edit\) Write a Brief/, "it is in a brief, and is not offered again");

    person.words = "Find this again";
    person.pick = (items) => items.find(({ act }) => act === "options");
    await run("delegate");
    await typed("Find this again");
    person.pick = (items) => items[0];
    person.words = `+++\nharness = "nobody"\n+++\nFind this, too`;
    await run("delegate");
    await typed(person.words);
    assert.ok(told("nobody"), asked.at(-1));

    const job = { ...(await jobNamed("Explain")).job, id: "20200101-000000-aaaaaa" };
    await run("resume", { job });
    assert.deepStrictEqual([person.offered, asked.at(-1).match(/\(\w+\)$/)?.[0]], ["", "(jobNotFound)"]);
    await run("resume", { job });
    assert.strictEqual(person.offered, person.words);
  });

  it("tells the end of each turn once: of a job that was partly applied, and of one that had to queue", async () => {
    const { repository } = (await jobNamed("Explain")).job;
    const write = (name) => ({ write: { path: `${name}.txt`, content: `${name}\n` } });
    const brief = script("Take turns", write("first"), write("second"));
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository });
    await inView("Take turns", "2 files");
    tree.check(await fileOf("Take turns", "first.txt"), true);
    person.buttons = ["Apply Selected"];
    await run("applySelected", await jobNamed("Take turns"));
    person.buttons = [];
    await until("a part of it", 60, async () => (await jobNamed("Take turns")).job.disposition === "partlyApplied");
    const ends = () => asked.filter((line) => line.startsWith("codex: Take turns: "));
    person.words = script("Go on", write("third"));
    await run("resume", await jobNamed("Take turns"));
    const [end] = await until("the end of the second turn", 60, () => ends().length > 0 && ends());
    assert.match(end, /^codex: Take turns: changed 3 files/);

    const config = path.join(process.env.HOME, ".config/pactify/config.toml");
    const before = fs.readFileSync(config, "utf8");
    fs.writeFileSync(config, before.replace("running-jobs = 8", "running-jobs = 1"));
    try {
      const first = script("Take the only place", { waitFor: [`${go}-place`, 60] });
      await vscode.commands.executeCommand("pactify.delegate", { brief: first, repository });
      await until("it works", 60, async () => (await jobNamed("Take the only place"))?.job.state === "running");
      person.words = script("Go on", write("fourth"));
      await run("resume", await jobNamed("Take turns"));
      await until("that it waits", 60, () => told("codex: Take turns goes on when its turn comes."));
      assert.strictEqual(ends().length, 1, "it has not ended again");
    } finally {
      fs.writeFileSync(config, before);
      fs.writeFileSync(`${go}-place`, "");
    }
    await until("the end of the third turn", 60, () => ends().length > 1);
    assert.match(ends()[1], /^codex: Take turns: changed 4 files/);
    await until("nothing that works", 60, () => bar["pactify.jobs"].text === "$(rocket) Pactify");
    assert.strictEqual(ends().length, 2, JSON.stringify(ends()));
  });

  it("keeps the last of ten thousand events, and asks a few times only", async () => {
    person.words = script("Talk a lot", { flood: 10000 }, { say: "the last word" }, { waitFor: [`${go}-flood`, 60] });
    const begun = Date.now();
    await run("delegate");
    const toast = await until("a toast", 60, () => toasts.find(({ title }) => title === "codex: Talk a lot"));
    // Meanwhile it can be cancelled; here the person thinks better of it.
    await until("it talks", 60, async () => (await jobNamed("Talk a lot"))?.job.state === "running");
    person.pick = () => undefined;
    asked.length = 0;
    await run("cancel");
    const isSaid = toast.messages.at(-1) === "the last word";
    person.pick = (items) => items[0];
    assert.match(asked.join(), /^Talk a lot running codex/);
    assert.ok(!isSaid, "the list came after all of it");
    await until("the last word", 60, () => toast.messages.at(-1) === "the last word");
    // As often as the view asks, and not for each event.
    const most = 20 + (5 * (Date.now() - begun)) / 1000;
    assert.ok(toast.messages.length < most, `${toast.messages.length} messages`);
    fs.writeFileSync(`${go}-flood`, "");
    await until("the toast goes", 60, () => toast.isOver);
  });

  it("goes on with a job whose server was killed or restarted, and starts it once", async () => {
    const late = { write: { path: "late.txt", content: "late\n" } };
    person.words = script("Outlive the server", { say: "Here." }, { waitFor: [`${go}-on`, 60] }, late);
    await run("delegate");
    const toast = await until("a toast", 60, () => toasts.find(({ title }) => title.includes("Outlive")));
    await until("it runs", 60, () => toast.messages.includes("Here."));
    const killed = serverPid();
    process.kill(killed, "SIGKILL");
    await until("another server", 60, () => serverPid() !== killed && serverPid());
    await Promise.all([run("restart"), run("restart"), run("restart")]);
    await until("one server, and no other", 60, () => serverPids().length === 1);
    assert.ok(!told("did not start"), JSON.stringify(asked.slice(-4)));
    fs.writeFileSync(`${go}-on`, "");
    await until("the toast goes", 60, () => toast.isOver);
    await until("the end in words", 60, () => told("codex: Outlive the server: changed 1 file"));
  });

  it("tells how a job of its own ended whose host was killed", async () => {
    const title = "Lose the host";
    person.words = script(title, { write: { path: "left.txt", content: "left\n" } }, { say: "Here." }, "hang");
    await run("delegate");
    const toast = await until("a toast", 60, () => toasts.find(({ title: of }) => of === `codex: ${title}`));
    await until("it runs", 60, () => toast.messages.includes("Here."));
    const jobId = (await jobNamed(title)).job.id;
    const { events } = await vscode.commands.executeCommand("pactify.events", { jobId });
    process.kill(events.map(({ event }) => event.host?.pid).find(Boolean), "SIGKILL");
    await until("its repair", 120, async () => (await jobNamed(title))?.job.state === "finished");
    const isEnd = (line) => line.startsWith(`codex: ${title}: `) && !line.includes(": its host is gone. ");
    await until("the end in words", 60, () => asked.some(isEnd));
    assert.match(asked.find(isEnd), /\(\w+\)\.?$/, "it ends with the stable code");
    await inView(title, "1 file");
    await run("refresh");
    assert.strictEqual(asked.filter(isEnd).length, 1, JSON.stringify(asked.filter(isEnd)));
  });

  it("is quiet about jobs of others, and tells without content when nobody looks", async () => {
    const { repository } = (await jobNamed("Explain")).job;
    const brief = script("Somebody else's", { write: { path: "other.txt", content: "o\n" } });
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository });
    await inView("Somebody else's", "1 file");
    await run("refresh");
    assert.ok(!told("codex: Somebody else's: "), "no message");
    const [now, state] = [Date.now, Object.getOwnPropertyDescriptor(vscode.window, "state")];
    Date.now = () => now() + 120_000;
    Object.defineProperty(vscode.window, "state", { value: { focused: false, active: false }, configurable: true });
    try {
      const another = { brief: brief.replace("Somebody", "Anybody"), repository };
      await vscode.commands.executeCommand("pactify.delegate", another);
      await until("the notice", 60, () => told("Pactify: a job has ended."));
      // An undo is no end.
      const notices = () => asked.filter((line) => line === "Pactify: a job has ended.").length;
      const [before, { id: jobId }] = [notices(), (await jobNamed("Somebody else's")).job];
      const { changeSet } = await vscode.commands.executeCommand("pactify.diffPreview", { jobId, limit: 1 });
      await vscode.commands.executeCommand("pactify.apply", { jobId, changeSet });
      const is = async (wanted) => (await jobNamed("Somebody else's")).job.disposition === wanted;
      await until("the apply", 60, () => is("applied"));
      await vscode.commands.executeCommand("pactify.undo", { jobId });
      await until("the undo", 60, () => is("pending"));
      await run("refresh");
      assert.strictEqual(notices(), before);
    } finally {
      Date.now = now;
      Object.defineProperty(vscode.window, "state", state);
    }
  });

  it("makes no links of an agent's words", async () => {
    const link = "[Cancel](command:workbench.action.quit)";
    const text = link.replace("(", "\u2060(");
    person.words = script(link, { say: link }, { waitFor: [`${go}-link`, 60] }, { write: { path: "README.md", content: "l\n" } });
    await run("delegate");
    const toast = await until("a toast", 60, () => toasts.find(({ title }) => title === `codex: ${text}`));
    await until("what the agent says", 60, () => toast.messages.at(-1) === text);
    fs.writeFileSync(`${go}-link`, "");
    await until("the end in words", 60, () => told(`codex: ${text}: changed 1 file`));
    await run("discard", await jobNamed(link));
    assert.ok(told(`Discard what “${text}” did?`));
    assert.ok(!told(`“${link}`), JSON.stringify(asked));
  });

  it("takes a change of the mode only where that is chosen, and tells equal names apart", async () => {
    const { repository } = (await jobNamed("Explain")).job;
    const before = read("README.md");
    const edit = { write: { path: "README.md", content: `${before}More.\n` } };
    const plain = { write: { path: "x%1B", content: "plain\n" } };
    const bytes = { run: "printf 'bytes\\n' > \"$(printf 'x\\033')\"" };
    const brief = script("Change the mode", edit, { chmod: ["README.md", "755"] }, plain, bytes);
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository, base: "workingTree" });
    await inView("Change the mode", "3 files");
    const node = await fileOf("Change the mode", "README.md");
    const [mode, part, ...others] = await tree.getChildren(node);
    assert.deepStrictEqual([tree.getTreeItem(mode).label, others], ["mode: executable", []]);
    const nodes = await tree.getChildren(await jobNamed("Change the mode"));
    assert.strictEqual(new Set(nodes.map((node) => tree.getTreeItem(node).id)).size, 3);
    tree.check(part, true);
    const same = nodes.filter(({ file }) => file.path !== "README.md");
    tree.check(same.find(({ file }) => file.pathBytes === undefined), true);
    const { Checked } = vscode.TreeItemCheckboxState;
    assert.strictEqual(same.filter((node) => tree.getTreeItem(node).checkboxState?.state === Checked).length, 1);
    person.buttons = ["Apply Selected"];
    await run("applySelected");
    assert.match(told("of “Change the mode” to"), /README\.md: 1 of its parts/);
    assert.ok(told("Pactify: applied 2 files of “Change the mode”"), JSON.stringify(asked.slice(-4)));
    assert.deepStrictEqual([read("README.md"), read("x%1B")], [`${before}More.\n`, "plain\n"]);
    assert.strictEqual(fs.statSync(file("README.md")).mode & 0o111, 0, "nobody chose the executable bit");
    await until("the bit as open", 60, () => isShown("mode: executable | the executable bit"));
    person.buttons = ["Apply"];
    await run("applyHunk", mode);
    assert.notStrictEqual(fs.statSync(file("README.md")).mode & 0o111, 0, "now it is chosen");
    person.buttons = [];
  });

  it("puts back what changed outside, and then applies without a word for it", async () => {
    const { repository } = (await jobNamed("Explain")).job;
    const hook = file(".git/hooks/post-checkout");
    const harm = { run: `printf '#!/bin/sh\\n' > '${hook}' && chmod +x '${hook}'` };
    const brief = script("Reach outside", harm, { write: { path: "back.txt", content: "back\n" } });
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository });
    await inView("Reach outside", "1 file");
    assert.ok(fs.existsSync(hook));
    person.buttons = ["Apply", "Put Back"];
    await run("preview", await jobNamed("Reach outside"));
    const question = told("While “Reach outside” ran, your git directory changed");
    assert.match(question, /post-checkout/, JSON.stringify(asked.slice(-4)));
    assert.deepStrictEqual([fs.existsSync(hook), read("back.txt")], [false, "back\n"]);
    person.buttons = [];
  });

  it("tells in the preview what changed outside, and applies all the same if that is wanted", async () => {
    const { repository } = (await jobNamed("Explain")).job;
    const hook = file(".git/hooks/post-merge");
    const harm = { run: `printf '#!/bin/sh\\n' > '${hook}' && chmod +x '${hook}'` };
    const brief = script("Reach out again", harm, { write: { path: "same.txt", content: "same\n" } });
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository });
    await inView("Reach out again", "1 file");
    await run("preview", await jobNamed("Reach out again"));
    assert.ok(told("“Reach out again” changed 1 file, +1 −0. Changes seen outside its tree: 1."), asked.at(-1));
    await run("apply", await jobNamed("Reach out again"));
    assert.strictEqual(read("same.txt"), undefined, "nobody answered");
    person.buttons = ["Apply"];
    await run("apply", await jobNamed("Reach out again"));
    assert.match(told("While “Reach out again” ran, your git directory changed"), /post-merge/);
    assert.deepStrictEqual([fs.existsSync(hook), read("same.txt")], [true, "same\n"]);
    fs.rmSync(hook);
    person.buttons = [];
  });

  it("shows what merging comes to, and writes that once it is confirmed", async () => {
    const { repository } = (await jobNamed("Explain")).job;
    const text = (changes) => Array.from({ length: 30 }, (_, at) => `${changes[at + 1] ?? `line ${at + 1}`}\n`).join("");
    const mine = (changes) => fs.writeFileSync(file("numbers.txt"), text(changes));
    mine({});
    const brief = script("Change a number", { write: { path: "numbers.txt", content: text({ 3: "three" }) } });
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository, base: "workingTree" });
    await inView("Change a number", "1 file");
    mine({ 28: "mine" });
    tree.check(await fileOf("Change a number", "numbers.txt"), true);
    person.buttons = ["Apply Selected"];
    await run("applySelected", await jobNamed("Change a number"));
    assert.ok(told("Nothing of “Change a number” was applied yet: you changed 1 file of it."), asked.at(-1));
    assert.strictEqual(read("numbers.txt"), text({ 28: "mine" }), "nobody confirmed it");
    const { label } = vscode.window.tabGroups.activeTabGroup.activeTab;
    assert.match(label, /^Pactify: merges of Change a number/);
    const isSide = (side) => (uri) => uri.path === "/numbers.txt" && uri.query.includes(`"${side}"`);
    await until("the merge", 60, () => openText(isSide("merged")) === text({ 3: "three", 28: "mine" }));
    await until("beside the checkout", 60, () => openText(isSide("current")) === text({ 28: "mine" }));
    // What was shown is not what would be written now: unsaved text is saved first, and then all is shown anew.
    const editor = await vscode.window.showTextDocument(vscode.Uri.joinPath(root, "numbers.txt"));
    const line = new vscode.Range(14, 0, 14, 99);
    await until("what is on the disk", 60, () => editor.document.getText() === text({ 28: "mine" }));
    await editor.edit((edit) => edit.replace(line, "mine, too"));
    person.buttons = ["Apply Selected", "Save and Apply", "Apply Merged"];
    await run("applySelected", await jobNamed("Change a number"));
    assert.ok(told("Nothing of “Change a number” was applied yet: 1 file of it has unsaved text.\nnumbers.txt"));
    assert.strictEqual(read("numbers.txt"), text({ 3: "three", 15: "mine, too", 28: "mine" }));
    person.buttons = [];
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  it("runs what a brief proposes once exactly that is allowed, and what the person names at once", async () => {
    const command = "test -e proved.txt && echo '<b>'";
    const header = `+++\nverify = [${JSON.stringify(command)}]\n+++\n`;
    person.words = header + script("Prove it", { write: { path: "proved.txt", content: "proved\n" } });
    await run("delegate");
    const question = told("The brief wants its result verified by running this, with your rights.");
    assert.ok(question.endsWith(`\n\n${command}`) || question.endsWith(`\n${command}`), question);
    assert.strictEqual(await jobNamed("Prove it"), undefined, "nobody allowed it");
    await until("the brief, to think about", 60, () => openText(({ scheme }) => scheme === "untitled")?.startsWith(header));
    person.buttons = ["Allow This Command"];
    await run("delegate");
    await inView("Prove it", "1 file");
    await run("details", await jobNamed("Prove it"));
    const details = () => vscode.window.activeTextEditor?.document.getText() ?? "";
    await until("that it passed", 60, () => details().includes(`\n- passed: ${command}\n`));
    person.buttons = [];

    person.form = (question) => (question.startsWith("What does its result") ? "test -e nowhere.txt" : "");
    await run("retry", await jobNamed("Prove it"));
    const isNamed = (line) => line.startsWith("codex: Prove it: ") && line.includes("test -e nowhere.txt");
    await until("that it did not pass", 60, () => asked.some(isNamed));
    person.form = () => "";
  });

  it("opens a job's tree in a window of its own once the person knows what may be in it", async () => {
    const { executeCommand } = vscode.commands;
    const opened = [];
    vscode.commands.executeCommand = (name, ...given) =>
      name === "vscode.openFolder" ? opened.push(given) : executeCommand(name, ...given);
    try {
      const job = await jobNamed("Change a number");
      await run("worktree", job);
      assert.ok(told("What the agent left there can act by itself"), asked.at(-1));
      assert.deepStrictEqual(opened, [], "nobody wanted it");
      person.buttons = ["Open"];
      await run("worktree", job);
      const [[tree, options]] = opened;
      assert.match(fs.readFileSync(path.join(tree.fsPath, "numbers.txt"), "utf8"), /^three$/m);
      assert.deepStrictEqual(options, { forceNewWindow: true });
    } finally {
      vscode.commands.executeCommand = executeCommand;
      person.buttons = [];
    }
  });

  it("shows its log", async () => {
    const isLog = ({ uri }) => uri.scheme === "output" && /pactify/i.test(uri.path);
    await run("log");
    await until("the log", 60, () => vscode.window.visibleTextEditors.some(({ document }) => isLog(document)));
  });

  it("says what went wrong, and what to do", async () => {
    person.words = script("Fail", { fail: "the model is out of cheese" });
    await run("delegate");
    const text = await until("the failure", 60, () => told("codex: Fail: "));
    assert.match(text, /\(\w+\)\.?$/, "it ends with the stable code");
  });
}

exports.run = kit.suite("the extension", tests);
