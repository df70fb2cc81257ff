// A real Chromium for the journeys through web pages, and a witness of everything a page does that it should not:
// requests to other places, messages on the console, breaches of its own policy.

import { accessSync, constants, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

/** Where Chromium is: CHROMIUM, else the first of the usual names on the PATH; undefined when there is none. */
export const chromiumPath: string | undefined = findChromium();

/** What a spec says when it is skipped. */
export const NO_CHROMIUM = 'no Chromium: install one, or name it in CHROMIUM';

/** A browser with an empty profile of its own. */
export interface Browser {
  open(): Promise<WatchedPage>;
  close(): Promise<void>;
}

/** A page and what it did. */
export interface WatchedPage {
  readonly page: Page;
  /** Every address it asked for. */
  readonly requests: readonly string[];
  /** Errors and warnings of the console, uncaught errors, breaches of the policy, failed requests. */
  readonly complaints: readonly string[];
}

/** Starts Chromium without a window. */
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
      // Not `rmSync`, whose retries do not wait: parts of the browser end after it, and write.
      await rm(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

async function watch(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  // The page tells of breaches itself, with more than the console says.
  await page.exposeFunction('reportBreach', (breach: string) => complaints.push(breach));
  await page.addInitScript({ content: REPORT_BREACHES });
  page.on('request', (request) => requests.push(request.url()));
  page.on('requestfailed', (request) => {
    // A client that has read its answer cancels the rest of the stream: the page did that, nothing failed.
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
    return false; // not there, or not ours to start
  }
}
