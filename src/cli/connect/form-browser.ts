// A browser for the pages of the sign-in: cookies, redirects within one origin, and forms without script.

import { CommandFailure } from '../failures.ts';
import { beginningOf } from '../remote/answering-url.ts';

/** The most redirects in a row; one more ends a visit. */
const MAX_REDIRECTS = 10;

/** A browser with one page open at a time, at one origin. */
export class FormBrowser {
  readonly #origin: string;
  readonly #timeoutMs: number;
  readonly #cookies = new Map<string, string>();
  #at: URL | undefined;
  #page = '';

  constructor(origin: string, timeoutMs: number) {
    this.#origin = origin;
    this.#timeoutMs = timeoutMs;
  }

  /** The text of the page, or the address of another origin to which it leads. Throws CommandFailure. */
  async open(address: URL, form?: URLSearchParams): Promise<string | URL> {
    let url = address;
    let body = form;
    for (let n = 0; n < MAX_REDIRECTS; n += 1) {
      if (url.origin !== this.#origin) return url;
      const response = await this.#load(url, body);
      for (const written of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(written) ?? [];
        this.#cookies.set(name, value);
      }
      const location = response.headers.get('location');
      if (response.status < 300 || response.status > 399 || location === null) {
        this.#at = url;
        this.#page = await pageOf(response, url);
        return this.#page;
      }
      await response.body?.cancel();
      url = targetOf(location, url);
      body = undefined;
    }
    throw new CommandFailure(`${this.#origin} redirects the browser again and again`);
  }

  /** Sends the form of the page that contains this text, with its hidden fields and these values. */
  send(part: string, values: Readonly<Record<string, string>>): Promise<string | URL> {
    const content = formWith(part, this.#page);
    const action = /^[^<>]*?\baction="([^"]*)"/.exec(content ?? '')?.[1];
    if (content === undefined || action === undefined || this.#at === undefined)
      throw new CommandFailure('the page has no such form');
    const hidden = [...content.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(
      ([, name = '', value = '']) => [name, value],
    );
    const body = new URLSearchParams({ ...Object.fromEntries(hidden), ...values });
    return this.open(targetOf(action, this.#at), body);
  }

  async #load(url: URL, body: URLSearchParams | undefined): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    try {
      return await fetch(url, {
        ...(body === undefined ? {} : { method: 'POST', body }),
        headers: { Accept: 'text/html', Origin: this.#origin, ...(cookie === '' ? {} : { Cookie: cookie }) },
        redirect: 'manual',
        signal: AbortSignal.timeout(this.#timeoutMs),
      });
    } catch (cause) {
      throw unanswered(url, cause);
    }
  }
}

async function pageOf(response: Response, url: URL): Promise<string> {
  return beginningOf(response).catch((cause: unknown) => {
    throw unanswered(url, cause);
  });
}

function unanswered({ origin, pathname }: URL, cause: unknown): CommandFailure {
  return new CommandFailure(`${origin}${pathname} did not answer`, { cause });
}

/** The address to which a page leads. Throws CommandFailure for a text that is none. */
function targetOf(written: string, page: URL): URL {
  const target = URL.parse(written, page.href);
  if (target !== null) return target;
  throw new CommandFailure(`${page.origin}${page.pathname} leads to "${written}", which is not an address`);
}

/**
 * The form with this text, after its `<form`. It is found without a regular expression for the whole form, which some
 * pages would keep busy for hours.
 */
function formWith(part: string, page: string): string | undefined {
  const before = page.split('</form>').find((text) => text.includes(part) && text.includes(FORM));
  return before?.slice(before.lastIndexOf(FORM) + FORM.length);
}

const FORM = '<form';
