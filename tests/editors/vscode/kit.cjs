// What the suites in the extension host share: a person, played by answers to the questions that the extension asks; steps
// with a time limit each; and what the jobs view shows. The server, the jobs and the files are real.

const fs = require("node:fs");
const path = require("node:path");
const Mocha = require(process.env.PACTIFY_MOCHA);
const vscode = require("vscode");

const until = async (what, seconds, condition) => {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${seconds} s; asked: ${JSON.stringify(asked)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

/** What the extension asked or told. */
const asked = [];
/**
 * How the person answers: the buttons that they press, by their beginnings; what they type, and over what; what they type
 * for a question of a form; what they choose, which is "back" for the way back.
 */
const person = { buttons: [], words: "", offered: undefined, folder: undefined };
Object.assign(person, { form: () => "", pick: (items) => items[0] });
const answer = async (text, ...rest) => {
  const [options] = rest;
  asked.push([text, options?.detail].filter(Boolean).join("\n"));
  return rest.find((button) => typeof button === "string" && person.buttons.some((wanted) => button.startsWith(wanted)));
};
const toasts = [];
/** Our items of the status bar, by their ids. */
const bar = {};

function playThePerson() {
  const { window } = vscode;
  for (const name of ["showInformationMessage", "showWarningMessage", "showErrorMessage"]) window[name] = answer;
  window.showInputBox = async ({ value }) => {
    person.offered = value;
    return person.words;
  };
  const choose = (items, box) => {
    asked.push(items.map(({ label, description, detail }) => [label, description, detail].join(" ")).join("\n"));
    return person.pick(items, box);
  };
  window.showQuickPick = async (items) => choose(items);
  window.showWorkspaceFolderPick = async () => {
    const folders = vscode.workspace.workspaceFolders;
    asked.push(`folder: ${folders.map(({ name }) => name).join()}`);
    return folders.find(({ name }) => name === person.folder);
  };
  window.createQuickPick = () => {
    const heard = {};
    const box = { value: "", items: [], selectedItems: [], hide: () => heard.hide?.(), dispose: () => undefined };
    for (const event of ["ChangeValue", "Accept", "Hide", "TriggerButton"]) {
      box[`onDid${event}`] = (listen) => (heard[event.toLowerCase()] = listen);
    }
    box.show = () =>
      setTimeout(() => {
        const words = box.step === undefined ? person.words : person.form(box.placeholder);
        if (heard.changevalue && box.value === "" && words !== "") {
          box.value = words;
          heard.changevalue(words);
        }
        const item = choose(box.items, box);
        if (item === undefined) return heard.hide();
        if (item === "back") return heard.triggerbutton(box.buttons[0]);
        box.selectedItems = [item];
        heard.accept();
      });
    return box;
  };
  const { createStatusBarItem } = window;
  window.createStatusBarItem = (id, ...rest) => (bar[id] = createStatusBarItem(id, ...rest));
  const { withProgress } = window;
  window.withProgress = (options, task) => {
    // The language client shows the server's own progress in the status bar.
    if (options.location !== vscode.ProgressLocation.Notification) return withProgress(options, task);
    const cancellation = new vscode.CancellationTokenSource();
    const toast = { ...options, messages: [], cancel: () => cancellation.cancel() };
    toasts.push(toast);
    const report = (value) => toast.messages.push(value.message);
    return withProgress(options, async () => {
      const done = await task({ report }, cancellation.token);
      toast.isOver = true;
      return done;
    });
  };
}

const script = (title, ...steps) => {
  const lines = steps.map((step) => JSON.stringify(step)).join("\n");
  return `${title}\n\n\`\`\`agent\n${lines}\n\`\`\`\n`;
};
const told = (text) => asked.find((line) => line.includes(text));
const run = (name, ...given) => vscode.commands.executeCommand(`pactify.ui.${name}`, ...given);

const home = process.env.PACTIFY_HOME ?? path.join(process.env.HOME, ".pactify");
/** What was asked for with a job. */
const recorded = (id) => JSON.parse(fs.readFileSync(path.join(home, "jobs", id, "job.json"), "utf8"));

let tree;
/** Everything that the jobs view shows below a node, as lines. */
const lines = async (node, depth = 0) => {
  const shown = [];
  for (const child of (await tree.getChildren(node)) ?? []) {
    const { label, description } = tree.getTreeItem(child);
    shown.push(`${"  ".repeat(depth)}${label} | ${description ?? ""}`, ...(await lines(child, depth + 1)));
  }
  return shown;
};
const find = async (matches, node) => {
  for (const child of (await tree.getChildren(node)) ?? []) {
    const found = matches(child) ? child : await find(matches, child);
    if (found !== undefined) return found;
  }
  return undefined;
};
/** The jobs, without what is below them. */
const jobs = async (node) => {
  const found = [];
  for (const child of await tree.getChildren(node)) found.push(...(child.kind === "job" ? [child] : await jobs(child)));
  return found;
};
const jobNamed = async (title) => (await jobs()).find(({ job }) => job.title === title);
const isShown = async (...texts) => (await lines()).some((line) => texts.every((text) => line.includes(text)));
const inView = (title, text) => until(`${title} as ${text}`, 60, () => isShown(title, text));
const fileOf = async (title, name) =>
  find((node) => node.kind === "file" && node.file.path === name, await jobNamed(title));
const openText = (start) => vscode.workspace.textDocuments.find(({ uri }) => start(uri))?.getText();

/** Starts the extension; gives its view, which all of the above is about. */
async function start() {
  playThePerson();
  ({ tree } = await vscode.extensions.getExtension("pactify.pactify").activate());
  return tree;
}

/** What VS Code runs: these tests, the first failure ends them. */
const suite = (title, tests) => () =>
  new Promise((resolve, reject) => {
    const mocha = new Mocha({ ui: "bdd", color: false, timeout: 200_000, bail: true });
    mocha.suite.emit("pre-require", global, "suite", mocha);
    describe(`${title} in VS Code ${vscode.version}`, tests);
    mocha.run((failures) => (failures === 0 ? resolve() : reject(new Error(`${failures} failed`))));
  });

const ofView = { lines, find, jobNamed, isShown, inView, fileOf };
module.exports = { ...ofView, asked, bar, home, openText, person, recorded, run, script, start, suite, toasts, told, until };
