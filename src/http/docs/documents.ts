// The documents of one app: the API description, the two pages that show it, and their files. Each is made at the first
// request for it and kept, so that none delays the start.

import { createHash } from 'node:crypto';
import { type BytesReply, bytes, type EmptyReply } from '../reply.ts';
import { type Asset, REDOC_ASSETS, readAsset, SWAGGER_ASSETS } from './assets.ts';
import { type Page, redocPage, swaggerPage } from './pages.ts';

/** Answers the routes of routes/documents.ts. `known` is the `If-None-Match` header; a matching one is answered 304. */
export interface Documents {
  description(known: string | undefined): Promise<BytesReply | EmptyReply>;
  page(name: PageName, known: string | undefined): Promise<BytesReply | EmptyReply>;
  /** `name` is listed in assets.ts. */
  asset(page: PageName, name: string, known: string | undefined): Promise<BytesReply | EmptyReply>;
}

/** Also the first segment of their paths. */
export type PageName = 'docs' | 'redoc';

/** Documents made on demand; `describe` makes the API description. */
export function createDocuments(describe: () => Promise<object>): Documents {
  const made = new Map<string, Promise<Document>>();
  const once = (key: string, make: () => Promise<Document>): Promise<Document> => {
    const document = made.get(key) ?? make();
    made.set(key, document);
    // A failure is not kept: a missing file can be installed.
    document.catch(() => made.delete(key));
    return document;
  };
  return {
    description: async (known) =>
      replyWith(await once('openapi.json', async () => descriptionDocument(await describe())), known),
    page: async (name, known) =>
      replyWith(await once(name, async () => pageDocument(await PAGES[name]())), known),
    asset: async (page, name, known) => {
      const asset = Object.hasOwn(ASSETS[page], name) ? ASSETS[page][name] : undefined;
      if (asset === undefined) throw new Error(`"${name}" is not in the list of files`);
      return replyWith(await once(`${page}/${name}`, () => fileDocument(asset)), known);
    },
  };
}

interface Document {
  readonly bytes: Buffer;
  readonly type: string;
  readonly etag: string;
  /** As `[name, value, …]`. */
  readonly headers: readonly string[];
}

const PAGES: Readonly<Record<PageName, () => Promise<Page>>> = {
  docs: swaggerPage,
  redoc: async () => redocPage(),
};

const ASSETS: Readonly<Record<PageName, Readonly<Record<string, Asset>>>> = {
  docs: SWAGGER_ASSETS,
  redoc: REDOC_ASSETS,
};

/** Validated on each use, because an upgrade changes it; with the ETag that costs a few bytes. */
const REVALIDATED = ['Cache-Control', 'no-cache'];
const CACHED_FOR_AN_HOUR = ['Cache-Control', 'public, max-age=3600'];

function descriptionDocument(description: object): Document {
  return documentOf(Buffer.from(JSON.stringify(description)), 'application/json', REVALIDATED);
}

function pageDocument({ html, headers }: Page): Document {
  return documentOf(Buffer.from(html), 'text/html; charset=utf-8', [...REVALIDATED, ...headers]);
}

async function fileDocument(asset: Asset): Promise<Document> {
  return documentOf(await readAsset(asset), asset.type, CACHED_FOR_AN_HOUR);
}

function documentOf(content: Buffer, type: string, headers: readonly string[]): Document {
  const etag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  return { bytes: content, type, etag, headers: [...headers, 'ETag', etag] };
}

function replyWith(document: Document, known: string | undefined): BytesReply | EmptyReply {
  const { headers, etag } = document;
  if (known !== undefined && matches(etag, known)) return { kind: 'empty', status: 304, headers };
  return { ...bytes(200, document.bytes, { headers }), type: document.type };
}

/** A weak tag matches, too: proxies that compress make tags weak. Source: RFC 9110 section 13.1.2. */
function matches(etag: string, known: string): boolean {
  return known.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
