// A browser without a window: cookies, redirects and plain HTML forms. Like a real one it sends cookies to every port of their host.

import { createHash, randomBytes } from 'node:crypto';
import * as assert from 'uvu/assert';
import { PASSWORD } from '../programs/mcp-program.ts';

export interface Visited {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
}

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly host: string;
  readonly path: string;
  /** The header as received. */
  readonly written: string;
}

/** Redirects in a row that end a visit. */
const MAX_REDIRECTS = 10;

export class ScriptedBrowser {
  readonly cookies: Cookie[] = [];
  /** The last page. */
  page: Visited | undefined;
  readonly #home: string;
  readonly #get: typeof fetch;

  /** `home`: the gateway. Redirects to other places are not followed: there a client waits. */
  constructor(home: string, get: typeof fetch = fetch) {
    this.#home = new URL(home).origin;
    this.#get = get;
  }

  /** The page, or the address elsewhere to which it leads. */
  async open(address: string | URL, init: RequestInit = {}): Promise<Visited | URL> {
    let url = new URL(address, this.page?.url);
    let request = init;
    for (let n = 0; n < MAX_REDIRECTS; n += 1) {
      if (url.origin !== this.#home) return url;
      const headers = new Headers(request.headers);
      const cookie = this.cookiesFor(url);
      if (cookie !== '') headers.set('Cookie', cookie);
      headers.set('Accept', 'text/html');
      const response = await this.#get(url, {
        ...request,
        headers,
        redirect: 'manual',
        signal: AbortSignal.timeout(30_000),
      });
      this.take(response.headers, url);
      const location = response.headers.get('location');
      if (response.status < 300 || response.status > 399 || location === null) {
        this.page = { url, status: response.status, headers: response.headers, html: await response.text() };
        return this.page;
      }
      await response.body?.cancel();
      url = new URL(location, url);
      request = {};
    }
    throw new Error(`more than ${MAX_REDIRECTS} redirects, the last one to ${url}`);
  }

  /** Fills in the form with this button, and sends it. `more`: further headers, and replaced ones. */
  async press(
    button: string,
    values: Readonly<Record<string, string>> = {},
    more: Readonly<Record<string, string>> = {},
  ): Promise<Visited | URL> {
    const { page } = this;
    if (page === undefined) throw new Error('no page is open');
    const form = formsIn(page.html).find(({ buttons }) => buttons.some(({ text }) => text === button));
    if (form === undefined) throw new Error(`no button "${button}" at ${page.url}:\n${textOf(page)}`);
    const pressed = form.buttons.find(({ text }) => text === button);
    const body = new URLSearchParams({ ...form.fields, ...values });
    if (pressed?.name !== undefined) body.set(pressed.name, pressed.value ?? '');
    return this.open(form.action === '' ? page.url : form.action, {
      method: form.method,
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        ...{ Origin: page.url.origin, 'Sec-Fetch-Site': 'same-origin' },
        ...more,
      },
      body: body.toString(),
    });
  }

  /** The header `Cookie` for this address; empty without one. */
  cookiesFor({ hostname, pathname }: URL): string {
    return this.cookies
      .filter(({ host, path }) => host === hostname && `${pathname}/`.startsWith(path.replace(/\/?$/, '/')))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
  }

  /** Keeps and removes the cookies of an answer. */
  take(headers: Headers, url: URL): void {
    for (const written of headers.getSetCookie()) this.#take(written, url);
  }

  #take(written: string, { hostname: host, pathname }: URL): void {
    const [pair = '', ...attributes] = written.split(';').map((part) => part.trim());
    const [name = '', value = ''] = pair.split(/=(.*)/s, 2);
    const of = (key: string) =>
      attributes.find((each) => each.toLowerCase().startsWith(`${key}=`))?.slice(key.length + 1);
    const path = of('path') ?? (pathname.replace(/\/[^/]*$/, '') || '/');
    const at = this.cookies.findIndex(
      (each) => each.name === name && each.host === host && each.path === path,
    );
    if (at !== -1) this.cookies.splice(at, 1);
    const isOver = of('max-age') === '0' || Date.parse(of('expires') ?? '') <= Date.now() || value === '';
    if (!isOver) this.cookies.push({ name, value, host, path, written });
  }
}

export interface Answer {
  readonly username?: string;
  readonly password?: string;
  readonly decision?: 'Allow' | 'Deny';
}

/** Follows an authorization request to its answer: signs in if the gateway asks, and decides. Resolves with the address of the client. */
export async function authorize(
  browser: ScriptedBrowser,
  address: string | URL,
  { username = 'admin', password = PASSWORD, decision = 'Allow' }: Answer = {},
): Promise<URL> {
  let at = await browser.open(address);
  if (isPage(at) && hasButton(at, 'Sign in')) at = await browser.press('Sign in', { username, password });
  if (isPage(at) && hasButton(at, decision)) at = await browser.press(decision);
  if (isPage(at)) throw new Error(`no answer for the client, but ${at.status} at ${at.url}:\n${textOf(at)}`);
  return at;
}

export function isPage(at: Visited | URL): at is Visited {
  return 'html' in at;
}

/** A page, not an answer for the client. */
export function pageOf(at: Visited | URL): Visited {
  assert.ok(isPage(at), `the browser was sent to ${at}`);
  return at as Visited;
}

function hasButton({ html }: Visited, text: string): boolean {
  return formsIn(html).some(({ buttons }) => buttons.some((button) => button.text === text));
}

/** What a reader sees, without the style. */
export function textOf({ html }: Pick<Visited, 'html'>): string {
  const bare = html.replace(/<style>.*?<\/style>/gs, '').replace(/<[^>]+>/g, ' ');
  return decoded(bare).replace(/\s+/g, ' ').trim();
}

interface Form {
  readonly method: string;
  readonly action: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly buttons: readonly {
    readonly text: string;
    readonly name?: string | undefined;
    readonly value?: string | undefined;
  }[];
}

function formsIn(html: string): readonly Form[] {
  return [...html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].map(([, attributes = '', content = '']) => {
    const inputs = [...content.matchAll(/<input\b([^>]*)>/g)].map(([, written = '']) =>
      attributesIn(written),
    );
    const fields = inputs.flatMap(({ name, value = '', type }) =>
      name === undefined || type === 'submit' ? [] : [[name, value]],
    );
    const buttons = [...content.matchAll(/<button\b([^>]*)>(.*?)<\/button>/gs)].map(
      ([, written = '', text = '']) => {
        const { name, value } = attributesIn(written);
        return { text: textOf({ html: text }), name, value };
      },
    );
    const { method = 'get', action = '' } = attributesIn(attributes);
    return { method: method.toUpperCase(), action, fields: Object.fromEntries(fields), buttons };
  });
}

function attributesIn(written: string): Readonly<Record<string, string | undefined>> {
  const found = [...written.matchAll(/([\w-]+)(?:="([^"]*)")?/g)];
  return Object.fromEntries(found.map(([, name = '', value = '']) => [name, decoded(value)]));
}

function decoded(text: string): string {
  return text
    .replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&');
}

// --- an OAuth client without a library, for requests that no library sends

export interface Proof {
  readonly verifier: string;
  readonly challenge: string;
}

export function newProof(): Proof {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}
