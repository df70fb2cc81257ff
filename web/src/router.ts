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
  | 'users'
  | 'audit'
  | 'settings';

interface PageRoute {
  readonly page: string;
  readonly params: URLSearchParams;
}

export const route = signal<PageRoute>(current());

/** The address of a page; empty parameters are omitted. */
export function href(page: PageName, params: Readonly<Record<string, string | undefined>> = {}): string {
  const set = Object.entries(params).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const query = new URLSearchParams(set).toString();
  return `${CONSOLE.pathname}${page === 'overview' ? '' : page}${query === '' ? '' : `?${query}`}`;
}

export function navigate(to: string, { replace = false } = {}): void {
  const url = new URL(to, location.href);
  if (url.href === location.href) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  const changesPage = current().page !== route.value.page;
  route.value = current();
  if (changesPage) scrollTo(0, 0);
}

/** Changes parameters of the present page without an entry in the history. */
export function setParams(changes: Readonly<Record<string, string | undefined>>): void {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) params.set(name, value);
    else params.delete(name);
  }
  const query = params.toString();
  navigate(`${location.pathname}${query === '' ? '' : `?${query}`}`, { replace: true });
}

/** Follows links to other pages of the console without loading a document. */
export function startRouter(): void {
  addEventListener('popstate', () => {
    route.value = current();
  });
  document.addEventListener('click', (event) => {
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!isPlain || event.defaultPrevented || link === null || link.target !== '' || link.download !== '')
      return;
    if (!link.href.startsWith(CONSOLE.href) || link.href.includes('#')) return;
    event.preventDefault();
    navigate(link.href);
  });
}

function current(): PageRoute {
  const page = location.pathname.slice(CONSOLE.pathname.length);
  return { page: page === '' ? 'overview' : page, params: new URLSearchParams(location.search) };
}
