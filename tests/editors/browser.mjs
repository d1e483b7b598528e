// A page in a headless browser, for tests/editors/browser.rs. Each line on stdin is an action as JSON, [NAME, ARGUMENT]. Each action
// is answered with one line on stdout: {"value": …} or {"error": …}.
//
//     node browser.mjs PLAYWRIGHT CHROMIUM
//
// PLAYWRIGHT is the directory of the package playwright-core.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [playwright, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(playwright);
const browser = await chromium.launch({ executablePath, headless: true, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, locale: 'en' });

// Returns the first visible element in any frame, or nothing.
async function find(selector) {
  for (const frame of page.frames()) {
    try {
      for (const element of await frame.$$(selector)) {
        if (await element.isVisible()) return element;
      }
    } catch {
      // The frame was replaced meanwhile.
    }
  }
}

const actions = {
  open: async (url) => { await page.goto(url); },
  press: (key) => page.keyboard.press(key),
  type: (text) => page.keyboard.type(text, { delay: 5 }),
  // Returns false if there is no such element.
  click: async (selector) => {
    const element = await find(selector);
    if (!element) return false;
    await element.click({ timeout: 2000 });
    return true;
  },
  text: async (selector) => (await (await find(selector))?.innerText()) ?? '',
  picture: async (path) => { await page.screenshot({ path }); },
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const [name, argument] = JSON.parse(line);
    answer = { value: (await actions[name](argument)) ?? null };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
await browser.close();
