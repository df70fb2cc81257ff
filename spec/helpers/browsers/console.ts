// Shared by the specs of the console: whether it can be tested on this machine, and signing in.

import { existsSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { PASSWORD } from '../programs/mcp-program.ts';
import { chromiumPath, NO_CHROMIUM } from './browser.ts';

/** The folder that Vite builds it into. */
export const CONSOLE_FILES = new URL('../../../web/dist/', import.meta.url);
export const isConsoleBuilt = existsSync(new URL('index.html', CONSOLE_FILES));
export const NOT_BUILT = 'the console is not built: run `npm run build:console`';

export const canUseConsole = isConsoleBuilt && chromiumPath !== undefined;
export const NO_CONSOLE = isConsoleBuilt ? NO_CHROMIUM : NOT_BUILT;

/** Fills in the login form, which may cover a page, and waits for the console. */
export async function signIn(page: Page, username = 'admin'): Promise<void> {
  const form = page.locator('.sign-in');
  await form.getByLabel('User name').fill(username);
  await form.getByLabel('Password').fill(PASSWORD);
  await form.getByRole('button', { name: 'Sign in' }).click();
  await form.waitFor({ state: 'detached' });
  await page.getByRole('navigation', { name: 'Pages' }).waitFor({ state: 'attached' });
}
