// The documents of one app: the API description, the two pages that show it, and their files. Each is made at the first request
// for it, so that the start does not wait for it.

import type { BytesReply, EmptyReply } from '../reply.ts';
import { type Asset, REDOC_ASSETS, readAsset, SWAGGER_ASSETS } from './assets.ts';
import {
  type CachedDocument,
  cachedDocument,
  documentReply,
  makeOnce,
  REVALIDATED,
} from './cached-document.ts';
import { redocPage, swaggerPage } from './pages.ts';

/** Answers the routes of routes/documents.ts; a matching `If-None-Match` header is answered 304. */
export interface Documents {
  description(ifNoneMatch: string | undefined): Promise<BytesReply | EmptyReply>;
  page(name: PageName, ifNoneMatch: string | undefined): Promise<BytesReply | EmptyReply>;
  /** `name` is listed in assets.ts. */
  asset(page: PageName, name: string, ifNoneMatch: string | undefined): Promise<BytesReply | EmptyReply>;
}

/** Also the first segment of the path. */
export type PageName = 'docs' | 'redoc';

/** Documents made on demand; `describe` makes the API description. */
export function createDocuments(describe: () => Promise<object>): Documents {
  const once = makeOnce<CachedDocument>();
  const description = async () =>
    cachedDocument(Buffer.from(JSON.stringify(await describe())), 'application/json', REVALIDATED);
  return {
    description: async (ifNoneMatch) => documentReply(await once('openapi.json', description), ifNoneMatch),
    page: async (name, ifNoneMatch) => documentReply(await once(name, () => pageDocument(name)), ifNoneMatch),
    asset: async (page, name, ifNoneMatch) => {
      const asset = Object.hasOwn(ASSETS[page], name) ? ASSETS[page][name] : undefined;
      if (asset === undefined) throw new Error(`"${name}" is not in the list of files`);
      return documentReply(await once(`${page}/${name}`, () => fileDocument(asset)), ifNoneMatch);
    },
  };
}

const ASSETS: Readonly<Record<PageName, Readonly<Record<string, Asset>>>> = {
  docs: SWAGGER_ASSETS,
  redoc: REDOC_ASSETS,
};

const CACHED_FOR_AN_HOUR = ['Cache-Control', 'public, max-age=3600'];

async function pageDocument(name: PageName): Promise<CachedDocument> {
  const { html, headers } = name === 'docs' ? await swaggerPage() : redocPage();
  return cachedDocument(Buffer.from(html), 'text/html; charset=utf-8', [...REVALIDATED, ...headers]);
}

async function fileDocument(asset: Asset): Promise<CachedDocument> {
  return cachedDocument(await readAsset(asset), asset.type, CACHED_FOR_AN_HOUR);
}
