// The pages: where each stands in the navigation, and the module that shows it, which is loaded when it is first opened.

import { signal } from '@preact/signals';
import type { FunctionComponent } from 'preact';
import { CONSOLE } from './api.ts';
import type { IconName } from './parts/icon.tsx';
import type { PageName } from './router.ts';
import { hasNodes } from './store.ts';

export interface Page {
  readonly title: string;
  readonly load: () => Promise<FunctionComponent>;
  /** The icon in the navigation; a page without one is not there. */
  readonly icon?: IconName;
  readonly isForAdmins?: boolean;
  /** True when the page is in the navigation. Default: always. */
  readonly isUseful?: () => boolean;
}

export const PAGES: Readonly<Record<PageName, Page>> = {
  overview: {
    title: 'Overview',
    load: async () => (await import('./pages/overview.tsx')).OverviewPage,
    icon: 'overview',
  },
  playground: {
    title: 'Playground',
    load: async () => (await import('./pages/playground.tsx')).PlaygroundPage,
    icon: 'playground',
  },
  activity: {
    title: 'Activity',
    load: async () => (await import('./pages/activity.tsx')).ActivityPage,
    icon: 'activity',
  },
  sessions: {
    title: 'Sessions',
    load: async () => (await import('./pages/sessions.tsx')).SessionsPage,
    icon: 'sessions',
  },
  nodes: {
    title: 'Nodes',
    load: async () => (await import('./pages/nodes.tsx')).NodesPage,
    icon: 'nodes',
    isUseful: () => hasNodes.value,
  },
  connect: {
    title: 'Connect',
    load: async () => (await import('./pages/connect.tsx')).ConnectPage,
    icon: 'connect',
  },
  grants: {
    title: 'Grants',
    load: async () => (await import('./pages/grants.tsx')).GrantsPage,
    icon: 'grants',
  },
  views: {
    title: 'Views',
    load: async () => (await import('./pages/views.tsx')).ViewsPage,
    icon: 'views',
  },
  connections: {
    title: 'Connected accounts',
    load: async () => (await import('./pages/connections.tsx')).ConnectionsPage,
    icon: 'connections',
  },
  users: {
    title: 'Users and keys',
    load: async () => (await import('./pages/users.tsx')).UsersPage,
    icon: 'users',
    isForAdmins: true,
  },
  audit: {
    title: 'Audit log',
    load: async () => (await import('./pages/audit.tsx')).AuditPage,
    icon: 'audit',
    isForAdmins: true,
  },
  settings: {
    title: 'Settings',
    load: async () => (await import('./pages/settings.tsx')).SettingsPage,
    icon: 'settings',
    isForAdmins: true,
  },
  template: {
    title: 'Template',
    load: async () => (await import('./pages/template.tsx')).TemplatePage,
  },
  view: {
    title: 'View',
    load: async () => (await import('./pages/view.tsx')).ViewPage,
  },
  register: {
    title: 'Register an instance',
    load: async () => (await import('./pages/register.tsx')).RegisterPage,
  },
};

/** The reason why a page could not be loaded. */
export interface LoadFault {
  readonly text: string;
  /** The gateway has other files than those of this console: only a reload helps. */
  readonly isOutdated: boolean;
}

/** The loaded pages, and why others could not be loaded. */
const loaded = signal<ReadonlyMap<PageName, FunctionComponent | LoadFault>>(new Map());

/** Undefined until `preparePage` has an outcome. */
export function loadedPage(name: PageName): FunctionComponent | LoadFault | undefined {
  return loaded.value.get(name);
}

export function isPage(name: string): name is PageName {
  return Object.hasOwn(PAGES, name);
}

/** Longer than this, the page that is left does not stay in view. */
const PATIENCE_MS = 300;

/**
 * Loads a page that is not loaded. The promise is fulfilled when the page can be shown, when it cannot be loaded, or when that takes long.
 * Undefined: it can be shown now, or there is no such page.
 */
export function preparePage(name: string): Promise<void> | undefined {
  if (!isPage(name) || typeof loaded.peek().get(name) === 'function') return undefined;
  const done = PAGES[name].load().catch(faultOf);
  const stored = done.then((outcome) => {
    loaded.value = new Map(loaded.peek()).set(name, outcome);
  });
  return Promise.race([stored, new Promise<void>((resolve) => setTimeout(resolve, PATIENCE_MS))]);
}

/** The page that the gateway serves now names other scripts after an update. */
async function faultOf(): Promise<LoadFault> {
  const answer = await fetch(CONSOLE, { cache: 'no-store' }).catch(() => undefined);
  const text = answer?.ok ? await answer.text() : undefined;
  if (text === undefined) return { text: 'The gateway does not answer.', isOutdated: false };
  const own = document.querySelector('script')?.getAttribute('src') ?? '';
  return text.includes(own)
    ? { text: 'A file of this page could not be loaded.', isOutdated: false }
    : {
        text: 'The gateway was updated since the console was opened. Reload it to open this page.',
        isOutdated: true,
      };
}
