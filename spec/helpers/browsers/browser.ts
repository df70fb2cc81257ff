// A real Chromium for specs of web pages. It records requests, console errors and warnings, and violations of the
// content security policy.

import { accessSync, constants, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import axe from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

/** The path of Chromium: CHROMIUM, else the first of the usual names on the PATH; undefined when there is none. */
export const chromiumPath: string | undefined = findChromium();

/** The reason given for a skipped spec. */
export const NO_CHROMIUM = 'no Chromium: install one, or name it in CHROMIUM';

/** A browser with a new, empty profile. */
export interface Browser {
  open(): Promise<WatchedPage>;
  close(): Promise<void>;
}

/** Longest wait for one condition, in ms, on a busy machine, too. The time limit of a test ends it earlier or later. */
const WAIT_MS = 100_000;

/** A page, its requests and its errors. */
export interface WatchedPage {
  readonly page: Page;
  /** Every URL that it requested. */
  readonly requests: readonly string[];
  /** Console errors and warnings, uncaught errors, policy violations, failed requests. */
  readonly complaints: readonly string[];
}

/** Starts headless Chromium. */
export async function launchBrowser(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'stagedoor-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    ...(chromiumPath === undefined ? {} : { executablePath: chromiumPath }),
    headless: true,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
  return {
    open: () => watch(context),
    close: async () => {
      await context.close();
      // Not `rmSync`, whose retries do not wait: some processes of the browser still write after it has closed.
      await rm(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

async function watch(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  const requests: string[] = [];
  const complaints: string[] = [];
  // The page reports violations itself, with more detail than the console.
  await page.exposeFunction('reportBreach', (breach: string) => complaints.push(breach));
  await page.addInitScript({ content: REPORT_BREACHES });
  page.on('request', (request) => requests.push(request.url()));
  page.on('requestfailed', (request) => {
    // A client that has read its answer cancels the rest of the stream; that is not a failure.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') complaints.push(`failed: ${request.url()}`);
  });
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  return { page, requests, complaints };
}

const REPORT_BREACHES = `document.addEventListener('securitypolicyviolation', (event) =>
  window.reportBreach('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile));`;

function findChromium(): string | undefined {
  const { CHROMIUM, PATH = '' } = process.env;
  if (CHROMIUM !== undefined && CHROMIUM !== '') return CHROMIUM;
  const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
  const folders = [...PATH.split(delimiter), '/usr/bin', '/usr/local/bin', '/snap/bin'];
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // it does not exist or is not executable
  }
}

/** The findings of axe, one line for each rule. Evaluated as text, because the policy of the page allows no such script. */
export async function axeFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const findings = await page.evaluate(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
      .then(({ violations }) => violations.map(({ id, nodes }) => id + ' at ' + nodes.map(({ target }) => target).join('; ')))`,
  );
  return Array.isArray(findings) ? findings.map(String) : [String(findings)];
}
