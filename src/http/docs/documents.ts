// The documents of one app: the API description, the two pages that show it, and their files, all from installed packages. Each is
// made at the first request for it, kept in memory and revalidated by its ETag. A name from a URL is looked up and never becomes part
// of a path.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type BytesReply, bytes, type EmptyReply } from '../reply.ts';
import { ASSETS, type Asset, type Edit, type PageName, redocPage, swaggerPage } from './pages.ts';

type DocumentReply = Promise<BytesReply | EmptyReply>;

/** Answers the routes of routes/documents.ts; a matching `If-None-Match` header is answered 304. */
export class Documents {
  readonly #once = makeOnce<CachedDocument>();
  readonly #describe: () => Promise<object>;

  constructor(describe: () => Promise<object>) {
    this.#describe = describe;
  }

  description(ifNoneMatch: string | undefined): DocumentReply {
    return this.#reply('openapi.json', ifNoneMatch, async () =>
      cachedDocument(Buffer.from(JSON.stringify(await this.#describe())), 'application/json', REVALIDATED),
    );
  }

  page(name: PageName, ifNoneMatch: string | undefined): DocumentReply {
    return this.#reply(name, ifNoneMatch, async () => {
      const { html, headers } = name === 'docs' ? await swaggerPage() : redocPage();
      return cachedDocument(Buffer.from(html), 'text/html; charset=utf-8', [...REVALIDATED, ...headers]);
    });
  }

  asset(page: PageName, name: string, ifNoneMatch: string | undefined): DocumentReply {
    return this.#reply(`${page}/${name}`, ifNoneMatch, async () => {
      const asset = Object.hasOwn(ASSETS[page], name) ? ASSETS[page][name] : undefined;
      if (asset === undefined) throw new Error(`"${name}" is not in the list of files`);
      return cachedDocument(await readAsset(asset), asset.type, CACHED_FOR_AN_HOUR);
    });
  }

  async #reply(
    key: string,
    ifNoneMatch: string | undefined,
    make: () => Promise<CachedDocument>,
  ): DocumentReply {
    return documentReply(await this.#once(key, make), ifNoneMatch);
  }
}

const CACHED_FOR_AN_HOUR = ['Cache-Control', 'public, max-age=3600'];

/** Header of a document that is revalidated on each use, because an upgrade may change it. */
export const REVALIDATED: readonly string[] = ['Cache-Control', 'no-cache'];

export interface CachedDocument {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  /** As `[name, value, …]`, with the ETag. */
  readonly headers: readonly string[];
}

export function cachedDocument(content: Buffer, type: string, headers: readonly string[]): CachedDocument {
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  return { bytes: content, type, etag, headers: [...headers, 'ETag', etag] };
}

/** Answers 304 when the `If-None-Match` header names the document. */
export function documentReply(
  { bytes: content, type, etag, headers }: CachedDocument,
  ifNoneMatch: string | undefined,
): BytesReply | EmptyReply {
  if (ifNoneMatch !== undefined && matches(etag, ifNoneMatch)) return { kind: 'empty', status: 304, headers };
  return { ...bytes(200, content, { headers }), type };
}

/** A weak tag matches, too: proxies that compress make tags weak. Source: RFC 9110 section 13.1.2. */
function matches(etag: string, ifNoneMatch: string): boolean {
  return ifNoneMatch.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}

/** Makes the value of a key at the first request for it. A failure is not kept: a missing file can be built or installed. */
export function makeOnce<T>(): (key: string, make: () => Promise<T>) => Promise<T> {
  const values = new Map<string, Promise<T>>();
  return (key, make) => {
    const value = values.get(key) ?? make();
    values.set(key, value);
    value.catch(() => values.delete(key));
    return value;
  };
}

const { resolve } = createRequire(import.meta.url);
/** The build copies redoc here. It cannot be a dependency: one of its own dependencies has a version that does not exist. */
const VENDOR = new URL('../../vendor/', import.meta.url);

/** Reads a listed file. Rejects when its package is not installed, or has another version than the edits expect. */
export async function readAsset({ module, edits = [] }: Asset): Promise<Buffer> {
  const content = await readFile(placeOf(module));
  if (edits.length === 0) return content;
  return Buffer.from(edits.reduce((text, edit) => edited(text, edit, module), content.toString('utf8')));
}

function placeOf(module: string): string | URL {
  const copy = new URL(module, VENDOR);
  return existsSync(copy) ? copy : resolve(module);
}

function edited(text: string, { passage, by }: Edit, module: string): string {
  const [before = '', after, ...more] = text.split(passage);
  if (after === undefined || more.length > 0)
    throw new Error(`${module} is not the expected file: ${passage.slice(0, 60)}`);
  return before + by + after;
}
