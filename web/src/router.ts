// The pages and their addresses: `/console/{page}?{parameters}`, also behind a path prefix of a proxy.

import { signal } from '@preact/signals';
import { CONSOLE } from './api.ts';

export type PageName =
  | 'overview'
  | 'template'
  | 'register'
  | 'playground'
  | 'activity'
  | 'sessions'
  | 'nodes'
  | 'connect'
  | 'grants'
  | 'connections'
  | 'views'
  | 'view'
  | 'users'
  | 'audit'
  | 'settings';

interface PageRoute {
  readonly page: string;
  readonly params: URLSearchParams;
}

/** Undefined when the page can be shown at once. The promise never rejects. */
type Prepare = (page: string) => Promise<void> | undefined;

export const route = signal<PageRoute>(current());

/** The address of a page; empty parameters are omitted. */
export function href(page: PageName, params: Readonly<Record<string, string | undefined>> = {}): string {
  const set = Object.entries(params).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const query = new URLSearchParams(set).toString();
  return `${CONSOLE.pathname}${page === 'overview' ? '' : page}${query === '' ? '' : `?${query}`}`;
}

/** The way to another page after an answer, for the page that asks for it now: it leads nowhere if that page was left since. */
export function navigatorFromHere(): (to: string) => void {
  const here = route.value;
  return (to) => {
    if (route.value === here) navigate(to);
  };
}

/** Shows another page, and its address, when it is loaded; until then the present page stays. */
export function navigate(to: string, { replace = false } = {}): void {
  const url = new URL(to, location.href);
  if (url.href === location.href) return;
  afterLoad(pageAt(url), () => {
    const changesPage = pageAt(url) !== route.value.page;
    if (replace) history.replaceState(null, '', url);
    else history.pushState(null, '', url);
    route.value = current();
    if (changesPage) scrollTo(0, 0);
  });
}

/** Loads a page: see `startRouter`. */
let prepare: Prepare = () => undefined;
let newest = 0;

/** Calls `show` when the page is loaded. Of several navigations to pages that are not loaded, the newest counts. */
function afterLoad(page: string, show: () => void): void {
  if (page !== route.value.page) newest += 1;
  const mine = newest;
  const loading = prepare(page);
  if (loading === undefined) show();
  else void loading.then(() => mine === newest && show());
}

/** Changes parameters of the present page without an entry in the history. */
export function setParams(changes: Readonly<Record<string, string | undefined>>): void {
  if (pageAt(location) !== route.value.page) return; // another page is about to be shown
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const query = params.toString();
  navigate(`${location.pathname}${query === '' ? '' : `?${query}`}`, { replace: true });
}

/** Follows links to other pages of the console without loading a document. `load` loads a page before it is shown. */
export function startRouter(load: Prepare): void {
  prepare = load;
  void prepare(route.value.page);
  addEventListener('popstate', () => {
    afterLoad(pageAt(location), () => {
      route.value = current();
    });
  });
  for (const type of ['pointerover', 'focusin']) document.addEventListener(type, prepareLinked);
  document.addEventListener('click', (event) => {
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = linkOf(event);
    if (!isPlain || event.defaultPrevented || link === undefined) return;
    event.preventDefault();
    navigate(link.href);
  });
}

/** The link to a page of the console that the event is at. */
function linkOf({ target }: Event): HTMLAnchorElement | undefined {
  const link = target instanceof Element ? target.closest('a') : null;
  if (link === null || link.target !== '' || link.download !== '') return undefined;
  return link.href.startsWith(CONSOLE.href) && !link.href.includes('#') ? link : undefined;
}

/** A page is loaded while the pointer or the focus is at its link. */
function prepareLinked(event: Event): void {
  const link = linkOf(event);
  if (link !== undefined) void prepare(pageAt(new URL(link.href)));
}

function pageAt({ pathname }: URL | Location): string {
  const page = pathname.slice(CONSOLE.pathname.length);
  return page === '' ? 'overview' : page;
}

function current(): PageRoute {
  return { page: pageAt(location), params: new URLSearchParams(location.search) };
}
