// The documents of one app: the API description, the two pages that show it, and their files. Each is made at the first
// request for it and kept, so that none delays the start.

import type { BytesReply, EmptyReply } from '../reply.ts';
import { type Asset, REDOC_ASSETS, readAsset, SWAGGER_ASSETS } from './assets.ts';
import { type KeptDocument, keptDocument, replyWith } from './kept.ts';
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
  const made = new Map<string, Promise<KeptDocument>>();
  const once = (key: string, make: () => Promise<KeptDocument>): Promise<KeptDocument> => {
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

function descriptionDocument(description: object): KeptDocument {
  return keptDocument(Buffer.from(JSON.stringify(description)), 'application/json', REVALIDATED);
}

function pageDocument({ html, headers }: Page): KeptDocument {
  return keptDocument(Buffer.from(html), 'text/html; charset=utf-8', [...REVALIDATED, ...headers]);
}

async function fileDocument(asset: Asset): Promise<KeptDocument> {
  return keptDocument(await readAsset(asset), asset.type, CACHED_FOR_AN_HOUR);
}
