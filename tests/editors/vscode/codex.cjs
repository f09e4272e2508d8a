// The way of a job from its brief to an undone apply, and the end of one whose command runs long, with the real codex:
// its provider plays `write`, and `wait` once the configuration says so. What else a person does: suite.cjs.

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const kit = require("./kit.cjs");

const { fileOf, find, isShown, jobNamed, openText, person, run, toasts, until } = kit;

/** Seconds for whatever takes a process, on a machine that may be busy. */
const PATIENCE = 120;

function tests() {
  const root = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const read = (name) => {
    const file = path.join(root, name);
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined;
  };
  const line = (changes, number) => changes[number] ?? `line ${number}`;
  const numbers = (changes) => Array.from({ length: 30 }, (_, at) => `${line(changes, at + 1)}\n`).join("");
  const [old, part, all] = [numbers({}), numbers({ 3: "three" }), numbers({ 3: "three", 28: "twenty-eight" })];
  const isOnDisk = (...texts) => assert.deepStrictEqual([read("numbers.txt"), read("greeting.txt")], texts);

  /** What became of the job. */
  const end = async (title) => {
    await until(`the end of ${title}`, PATIENCE, async () => (await jobNamed(title))?.job.state === "finished");
    return (await jobNamed(title)).job.outcome;
  };
  const is = (wanted) =>
    until(wanted, PATIENCE, async () => (await jobNamed("Change two numbers")).job.disposition === wanted);

  let tree;
  before(async () => (tree = await kit.start()));

  it("delegates to codex, which writes nothing into the checkout", async () => {
    person.words = "Change two numbers";
    await run("delegate");
    assert.strictEqual(await end("Change two numbers"), "succeeded");
    await until("what it changed", PATIENCE, () => isShown("Change two numbers", "2 files"));
    isOnDisk(old, undefined);
  });

  it("previews what codex did", async () => {
    await run("preview", await jobNamed("Change two numbers"));
    const isSide = (side) => (uri) => uri.path === "/numbers.txt" && uri.query.includes(`"${side}"`);
    const isThere = () => openText(isSide("base")) === old && openText(isSide("result")) === all;
    await until("both sides", PATIENCE, isThere);
  });

  it("applies one part", async () => {
    tree.check(await find(({ kind }) => kind === "part", await fileOf("Change two numbers", "numbers.txt")), true);
    person.buttons = ["Apply Selected"];
    await run("applySelected", await jobNamed("Change two numbers"));
    isOnDisk(part, undefined);
    await is("partlyApplied");
  });

  it("applies the rest", async () => {
    person.buttons = ["Apply"];
    await run("apply", await jobNamed("Change two numbers"));
    isOnDisk(all, "hello\n");
    await is("applied");
  });

  it("undoes one apply after the other, until the files are as before", async () => {
    await run("undo", await jobNamed("Change two numbers"));
    isOnDisk(part, undefined);
    await run("undo", await jobNamed("Change two numbers"));
    isOnDisk(old, undefined);
  });

  it("cancels a job whose command runs long", async () => {
    const config = path.join(process.env.XDG_CONFIG_HOME, "pactify/config.toml");
    fs.writeFileSync(config, fs.readFileSync(config, "utf8").replace("/s/write/", "/s/wait/"));
    person.words = "Take your time";
    await run("delegate");
    const toast = () => toasts.find(({ title }) => title === "codex: Take your time");
    await until("its command", PATIENCE, () => toast()?.messages.some((text) => text?.includes("sleep 3001")));
    toast().cancel();
    assert.strictEqual(await end("Take your time"), "cancelled");
  });
}

exports.run = kit.suite("codex with the extension", tests);
