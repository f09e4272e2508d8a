// A real VS Code for one test: code-server on a loopback port, and headless chromium that shows it.
//
// Everything is below `root`, the test's own folder. The server leads a process group, because it forks.

import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";

const SETTINGS = {
  "chat.commandCenter.enabled": false,
  "chat.disableAIFeatures": true,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "files.autoSave": "off",
  "git.enabled": false,
  "remote.autoForwardPorts": false,
  "remote.restoreForwardedPorts": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.confirmBeforeClose": "never",
  "window.menuBarVisibility": "classic",
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.preferredLightColorTheme": "Default Light Modern",
  "workbench.preferredDarkColorTheme": "Default Dark Modern",
  "workbench.enableExperiments": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};
const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"].concat(
  ["--disable-background-networking", "--disable-component-update", "--disable-sync"],
);

/** For what is seen at once by who didn't press in vain, in milliseconds. */
const PATIENCE = 10_000;

/** What the test was given. */
export const given = (name) => process.env[name] ?? fail(`${name} is not set: this is run by the e2e tests`);

/** Runs one step within its time limit; the first failure ends the run with a picture. */
export async function step(name, seconds, run) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${seconds} s`)), seconds * 1000);
  });
  try {
    const result = await Promise.race([run(), late]);
    console.log(`ok - ${name}`);
    return result;
  } catch (error) {
    throw new Error(`not ok - ${name}: ${error.message}`);
  } finally {
    clearTimeout(timer);
  }
}

/** True if it comes to its end before its own time limit. */
const inTime = (wait) =>
  wait.then(
    () => true,
    (error) => error.name !== "TimeoutError" && fail(error.message),
  );

/** Starts VS Code, shows `workspace` (a folder, or a file that names several) to `use`, and ends everything that was started. */
export async function withVsCode({ workspace, extensions, settings, machine, payload, use }) {
  const root = given("PACTIFY_UI_ROOT");
  const folder = (...names) => {
    const made = path.join(root, ...names);
    fs.mkdirSync(made, { recursive: true });
    return made;
  };
  const user = folder("user");
  fs.writeFileSync(path.join(folder("user", "User"), "settings.json"), JSON.stringify({ ...SETTINGS, ...settings }));
  fs.writeFileSync(path.join(folder("user", "Machine"), "settings.json"), JSON.stringify(machine ?? {}));
  fs.writeFileSync(path.join(root, "config.yaml"), "auth: none\n");
  const port = await freePort();
  const log = fs.openSync(path.join(root, "code-server.log"), "w");
  const server = spawn(
    process.execPath,
    [
      given("PACTIFY_CODE_SERVER"),
      ...["--config", path.join(root, "config.yaml"), "--user-data-dir", user, "--extensions-dir", extensions],
      ...["--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry", "--disable-update-check"],
      ...["--disable-getting-started-override", "--disable-proxy", "--ignore-last-opened"],
      ...(payload ? ["--vscode-option", "enable-smoke-test-driver"] : []),
    ],
    { env: { ...process.env, EXTENSIONS_GALLERY: "{}" }, stdio: ["ignore", log, log], detached: true },
  );
  const ended = new Promise((resolve) => server.on("exit", resolve));
  let browser;
  let page;
  try {
    await step("code-server answers", 120, () => answers(port));
    const { chromium } = await import(pathToFileURL(path.join(given("PACTIFY_PLAYWRIGHT"), "index.mjs")));
    browser = await chromium.launchPersistentContext(folder("browser"), {
      executablePath: given("PACTIFY_CHROMIUM"),
      headless: true,
      viewport: { width: 1440, height: 860 },
      colorScheme: "dark",
      args: ARGUMENTS,
      timeout: 120_000,
    });
    page = browser.pages()[0] ?? (await browser.newPage());
    page.setDefaultTimeout(0);
    const query = new URLSearchParams({ [workspace.endsWith(".code-workspace") ? "workspace" : "folder"]: workspace });
    if (payload) query.set("payload", JSON.stringify(payload(port)));
    await use(page, `http://127.0.0.1:${port}/?${query}`);
  } catch (error) {
    const run = path.basename(process.argv[1], ".mjs");
    const picture = await shoot(page, `failure-of-${run}`).catch(() => "there is no picture");
    console.error(`${error.message}\npicture: ${picture}\nlog: ${path.join(root, "code-server.log")}`);
    process.exitCode = 1;
  } finally {
    await browser?.close().catch(() => undefined);
    signal(server, "SIGTERM");
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 5000))]);
    signal(server, "SIGKILL");
  }
}

/** What a person sees and does in the workbench. */
export function hands(page) {
  const row = (text) => page.locator(".sidebar .monaco-list-row", { hasText: text }).first();
  const pick = (text) => page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
  const fill = (text) => page.locator(".quick-input-widget:visible input.input").fill(text, { timeout: PATIENCE });
  /** What Enter takes: rows of before the text was filled in may still be there. */
  const first = (text) => page.locator(".quick-input-list .monaco-list-row.focused", { hasText: text });
  /** Types into the palette and takes the row; again if a window that still starts takes the focus away meanwhile. */
  const palette = async (key, text, wanted, taken) => {
    const take = async () => {
      await page.keyboard.press(key);
      await fill(text);
      await first(wanted).waitFor({ timeout: PATIENCE });
      await page.keyboard.press("Enter");
      await taken();
    };
    while (!(await inTime(take()))) await page.keyboard.press("Escape");
  };
  return {
    row,
    pick,
    toast: (text) => page.locator(".notifications-toasts .notification-list-item", { hasText: text }).first(),
    button: (place, text) => place.locator(".monaco-button", { hasText: text }).first(),
    dialog: (text) => page.locator(".monaco-dialog-box", { hasText: text }),
    /** Runs one of our commands by the palette. */
    command: (name) => {
      const row = first(`Pactify: ${name}`);
      return palette("F1", `>Pactify: ${name}`, `Pactify: ${name}`, () => row.waitFor({ state: "hidden", timeout: PATIENCE }));
    },
    open: (name) => {
      const tab = page.locator(".tab.active", { hasText: name });
      return palette("Control+p", name, name, () => tab.waitFor({ timeout: PATIENCE }));
    },
    /** Takes a row of a list that was opened to choose from. */
    choose: async (text) => {
      await first(text).waitFor();
      await page.keyboard.press("Enter");
    },
    /** Presses what may move or be drawn anew under the pointer, and then hears nothing, until `heard` is there. */
    press: async (what, heard, patience = PATIENCE) => {
      // What is pressed may come late, and go soon: a toast lives for ten seconds.
      await what.click();
      // Once it is heard, there may be nothing left to press.
      while (!(await inTime(heard.waitFor({ timeout: patience })))) await inTime(what.click({ timeout: PATIENCE / 4 }));
    },
    showJobs: () => page.locator('.activitybar .action-item:has([aria-label^="Pactify"])').click(),
  };
}

/** Keeps a picture of the page; returns where it is. */
export async function shoot(page, name) {
  const folder = given("PACTIFY_PICTURES");
  fs.mkdirSync(folder, { recursive: true });
  const picture = path.join(folder, `${name}.png`);
  await page.screenshot({ path: picture });
  return picture;
}

/**
 * Takes the same picture in the dark and in the light; a run that isn't for pictures is content with the first.
 *
 * VS Code follows the system (`window.autoDetectColorScheme`): no list or question closes for it, as it would for a
 * command.
 */
export async function shootBoth(page, name) {
  const picture = await shoot(page, name);
  if (process.env.PACTIFY_BOTH_THEMES === undefined) return picture;
  await prefer(page, "light", "vs");
  await shoot(page, `${name}-light`);
  await prefer(page, "dark", "vs-dark");
  return picture;
}

/** Lets the system prefer the light or the dark; `mark` is the class of what comes. */
async function prefer(page, colorScheme, mark) {
  await page.emulateMedia({ colorScheme });
  await page.locator(`.monaco-workbench.${mark}`).waitFor({ timeout: 60_000 });
  await fadeIn(page);
}

/** Shows the page in the dark if it is in the light, and the other way round; `mark` is the class of what comes. */
export async function toggleTheme(page, mark) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget:visible input.input").fill(">Toggle between Light/Dark Themes");
  const row = page.locator(".quick-input-list .monaco-list-row", { hasText: "Light/Dark" }).first();
  await row.waitFor({ timeout: 20_000 });
  await page.keyboard.press("Enter");
  await page.locator(`.monaco-workbench.${mark}`).waitFor({ timeout: 20_000 });
  await fadeIn(page);
}

/** The colours of a theme do so. */
const fadeIn = (page) => page.waitForTimeout(700);

function signal(server, name) {
  try {
    process.kill(-server.pid, name);
  } catch {
    // The group is gone.
  }
}

/** Below the ports of outgoing connections: nobody takes it before code-server has it. */
async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const isFree = await new Promise((resolve) => {
      const socket = net.createServer().once("error", () => resolve(false));
      socket.listen(port, "127.0.0.1", () => socket.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

async function answers(port) {
  const get = () =>
    new Promise((resolve) => {
      const request = http.get(`http://127.0.0.1:${port}/healthz`, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      request.on("error", () => resolve(false));
    });
  while (!(await get())) await new Promise((resolve) => setTimeout(resolve, 100));
}

function fail(message) {
  throw new Error(message);
}
