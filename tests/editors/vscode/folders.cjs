// The extension in a window with two folders, each a repository: which one is meant, which one is shown and written to.
// And a result of ten thousand files in one of them, while the window goes on answering.

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const vscode = require("vscode");
const kit = require("./kit.cjs");

const { asked, inView, isShown, jobNamed, person, run, script, told, until } = kit;

/** A pause that nobody notices, in milliseconds; a machine that is quiet has no longer ones. */
const UNNOTICED = 50;
/** So much longer than with a small result the window may stand still with a large one, and so much more be computed. */
const MOST_TIMES = 5;
const MOST_WORK = 25;

function tests() {
  const [one, two] = vscode.workspace.workspaceFolders;
  const read = ({ uri }, name) => {
    const file = path.join(uri.fsPath, name);
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : undefined;
  };

  let tree;
  before(async () => (tree = await kit.start()));

  it("asks which folder is meant where no document says it", async () => {
    person.words = script("Work in two", { write: { path: "two.txt", content: "two\n" } });
    person.folder = undefined;
    await run("delegate");
    assert.deepStrictEqual(asked.splice(0), ["folder: one,two"], "nobody chose one, and so nothing was begun");
    person.folder = "two";
    await run("delegate");
    await inView("Work in two", "1 file");
    const [group] = await tree.getChildren();
    assert.strictEqual(tree.getTreeItem(group).label, "To Review", "one repository needs no level of its own");
  });

  it("takes the folder of the document that the person is in", async () => {
    await vscode.window.showTextDocument(vscode.Uri.joinPath(one.uri, "README.md"));
    person.words = script("Work in one", { write: { path: "one.txt", content: "one\n" } });
    asked.length = 0;
    await run("delegate");
    await inView("Work in one", "1 file");
    assert.ok(!told("folder: "), JSON.stringify(asked));
  });

  it("groups the jobs by their repositories", async () => {
    const shown = {};
    for (const repository of await tree.getChildren()) {
      const groups = await tree.getChildren(repository);
      const below = await Promise.all(groups.map((group) => tree.getChildren(group)));
      const titles = below.flat().map(({ job }) => job.title);
      shown[tree.getTreeItem(repository).label] = [groups.map(({ group }) => group), titles];
    }
    assert.deepStrictEqual(shown, { one: [["To Review"], ["Work in one"]], two: [["To Review"], ["Work in two"]] });
  });

  it("applies in the repository of the job, whichever document is open", async () => {
    person.buttons = ["Apply"];
    await run("preview", await jobNamed("Work in two"));
    assert.ok(told("Apply 1 file of “Work in two” to two?"), JSON.stringify(asked));
    assert.deepStrictEqual([read(two, "two.txt"), read(one, "two.txt")], ["two\n", undefined]);
    person.buttons = [];
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  });

  it("lists the jobs of the other folders where one is gone", async () => {
    const gone = vscode.Uri.joinPath(one.uri, "../gone");
    const change = async (at, count, ...folders) => {
      const heard = new Promise((resolve) => {
        const listening = vscode.workspace.onDidChangeWorkspaceFolders(() => resolve(listening.dispose()));
      });
      assert.ok(vscode.workspace.updateWorkspaceFolders(at, count, ...folders.map((uri) => ({ uri }))));
      await heard;
    };
    await change(1, 1, gone);
    await until("the jobs of one", 30, async () => (await isShown("Work in one")) && !(await isShown("Work in two")));
    await change(2, 0, two.uri);
    await inView("Work in two", "1 file");
    await change(1, 1);
    await inView("Work in two", "1 file");
  });

  /** The longest that a word to the window and back took while `work` went on, and what this process computed for it. */
  const effort = async (work) => {
    let [isOver, pause, last] = [false, 0, performance.now()];
    const before = process.cpuUsage();
    const beating = (async () => {
      while (!isOver) {
        await vscode.commands.executeCommand("setContext", "pactify.test", last);
        const now = performance.now();
        [pause, last] = [Math.max(pause, now - last), now];
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    await work();
    const { user, system } = process.cpuUsage(before);
    isOver = true;
    await beating;
    return { pause: Math.round(pause), computing: Math.round((user + system) / 1000) };
  };
  /** Previews the job in the diff and in the view; gives what that took, and what the view shows below the job. */
  const look = async (title) => {
    const node = await jobNamed(title);
    let shown;
    const took = await effort(async () => {
      await run("preview", node);
      shown = (await tree.getChildren(node)).map((child) => tree.getTreeItem(child));
      await until("the diff", 60, () => vscode.window.tabGroups.activeTabGroup.activeTab?.label.includes(title));
    });
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    return { ...took, shown };
  };
  const write = async (title, count) => {
    const brief = script(title, { run: `mkdir many; for n in $(seq ${count}); do echo $n > many/$n.txt; done` });
    await vscode.commands.executeCommand("pactify.delegate", { brief, repository: one.uri.toString() });
    await until(`the end of “${title}”`, 80, async () => (await jobNamed(title))?.job.changes?.files === count);
  };

  it("opens a result of ten thousand files as quickly to the eye as one of fifty", async () => {
    await write("Write fifty files", 50);
    await write("Write ten thousand files", 10_000);
    // As many as the diff shows at once: what VS Code takes for that is not what is measured.
    const small = await look("Write fifty files");
    const large = await look("Write ten thousand files");
    const figures = JSON.stringify([small, large].map(({ pause, computing }) => ({ pause, computing })));
    fs.writeFileSync(path.join(process.env.PACTIFY_PICTURES, "ten-thousand-files.json"), figures);
    assert.ok(large.pause < MOST_TIMES * Math.max(small.pause, UNNOTICED), `the window stood still: ${figures}`);
    assert.ok(large.computing < MOST_WORK * small.computing, `it computed too much: ${figures}`);
    assert.ok(told("9950 files more are in the jobs view."), JSON.stringify(asked.at(-1)));
    assert.deepStrictEqual([small.shown.length, large.shown.length], [50, 501], "a page of it, and the way to more");
    assert.strictEqual(large.shown.at(-1).label, "Show More of 9500 Other Files");
  });

  it("shows more of them page by page, and takes one of the last", async () => {
    const node = await jobNamed("Write ten thousand files");
    await vscode.commands.executeCommand(...more(await tree.getChildren(node)));
    const children = await tree.getChildren(node);
    assert.strictEqual(children.length, 1001);
    tree.check(children[999], true);
    person.buttons = ["Apply Selected"];
    await run("applySelected", node);
    const { path: name } = children[999].file;
    assert.strictEqual(read(one, name), `${path.basename(name, ".txt")}\n`);
    assert.strictEqual(fs.readdirSync(path.join(one.uri.fsPath, "many")).length, 1);
    person.buttons = [];
  });
  const more = (children) => {
    const { command } = tree.getTreeItem(children.at(-1));
    return [command.command, ...command.arguments];
  };
}

exports.run = kit.suite("two folders", tests);
