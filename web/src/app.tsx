// The frame around all pages: navigation, connection, theme, account. Without an account it shows sign-in in place of the page.

import type { FunctionComponent } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { account, accountError, isAdmin, loadAccount, signOut } from './account.ts';
import { connection } from './events.ts';
import { ActivityPage } from './pages/activity.tsx';
import { AuditPage } from './pages/audit.tsx';
import { ConnectPage } from './pages/connect.tsx';
import { GrantsPage } from './pages/grants.tsx';
import { NodesPage } from './pages/nodes.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { PlaygroundPage } from './pages/playground.tsx';
import { RegisterPage } from './pages/register.tsx';
import { SessionsPage } from './pages/sessions.tsx';
import { SettingsPage } from './pages/settings.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { TemplatePage } from './pages/template.tsx';
import { UsersPage } from './pages/users.tsx';
import { Icon, type IconName } from './parts/icon.tsx';
import { Logo } from './parts/logo.tsx';
import { attempt, Notices } from './parts/notices.tsx';
import { Empty, Failure, Loading } from './parts/status.tsx';
import { href, type PageName, route } from './router.ts';
import { hasNodes } from './store.ts';
import { type Theme, theme } from './theme.ts';

interface PageEntry {
  readonly title: string;
  readonly view: FunctionComponent;
  /** In the navigation, with this icon. */
  readonly icon?: IconName;
  readonly isForAdmins?: boolean;
  /** In the navigation only then. Default: always. */
  readonly isUseful?: () => boolean;
}

const PAGES: Readonly<Record<PageName, PageEntry>> = {
  overview: { title: 'Overview', view: OverviewPage, icon: 'overview' },
  playground: { title: 'Playground', view: PlaygroundPage, icon: 'playground' },
  activity: { title: 'Activity', view: ActivityPage, icon: 'activity' },
  sessions: { title: 'Sessions', view: SessionsPage, icon: 'sessions' },
  nodes: { title: 'Nodes', view: NodesPage, icon: 'nodes', isUseful: () => hasNodes.value },
  connect: { title: 'Connect', view: ConnectPage, icon: 'connect' },
  grants: { title: 'Grants', view: GrantsPage, icon: 'grants' },
  users: { title: 'Users and keys', view: UsersPage, icon: 'users', isForAdmins: true },
  audit: { title: 'Audit log', view: AuditPage, icon: 'audit', isForAdmins: true },
  settings: { title: 'Settings', view: SettingsPage, icon: 'settings', isForAdmins: true },
  template: { title: 'Template', view: TemplatePage },
  register: { title: 'Register an instance', view: RegisterPage },
};

function isPage(name: string): name is PageName {
  return Object.hasOwn(PAGES, name);
}

export function App() {
  if (account.value === undefined) return <Starting />;
  return (
    <>
      {account.value === null ? <SignInPage /> : <Shell />}
      <Notices />
    </>
  );
}

function Starting() {
  const error = accountError.value;
  return (
    <main class="sign-in">
      {error === undefined ? (
        <Loading what="the console" />
      ) : (
        <Failure text={error} onRetry={() => void loadAccount()} />
      )}
    </main>
  );
}

function Shell() {
  const { page } = route.value;
  const entry = isPage(page) ? PAGES[page] : undefined;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const title = entry?.title ?? 'Not found';
  useEffect(() => {
    document.title = `${title} · Stagedoor`;
    setMenuOpen(false);
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [page]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="side">
        <div class="brand">
          <a href={href('overview')} aria-label="Stagedoor, overview">
            <Logo />
          </a>
          <button
            type="button"
            class="plain menu"
            aria-expanded={isMenuOpen}
            aria-controls="navigation"
            onClick={() => setMenuOpen(!isMenuOpen)}
          >
            <Icon name="menu" />
            Menu
          </button>
        </div>
        <div id="navigation" class={isMenuOpen ? 'navigation open' : 'navigation'}>
          <Navigation current={page} />
          <div class="side-end">
            <ConnectionState />
            <ThemeSwitch />
            <AccountBox />
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {connection.value === 'offline' && (
          <p class="callout warn" role="alert">
            <Icon name="warn" />
            The connection to the gateway is lost. Reconnecting…
          </p>
        )}
        <Page entry={entry} />
      </main>
    </div>
  );
}

function Page({ entry }: { readonly entry: PageEntry | undefined }) {
  if (entry === undefined || (entry.isForAdmins && !isAdmin.value)) {
    return (
      <>
        <h1>Not found</h1>
        <Empty title="Page not found, or your account may not see it.">
          <a href={href('overview')}>Go to the overview</a>
        </Empty>
      </>
    );
  }
  const View = entry.view;
  return <View />;
}

function Navigation({ current }: { readonly current: string }) {
  return (
    <nav aria-label="Pages">
      <ul>
        {Object.entries(PAGES).map(([name, { title, icon, isForAdmins = false, isUseful }]) =>
          !isPage(name) ||
          icon === undefined ||
          (isForAdmins && !isAdmin.value) ||
          isUseful?.() === false ? null : (
            <li key={name}>
              <a href={href(name)} aria-current={name === current ? 'page' : undefined}>
                <Icon name={icon} />
                {title}
              </a>
            </li>
          ),
        )}
      </ul>
    </nav>
  );
}

const CONNECTIONS = {
  connecting: { icon: 'starting', tone: 'idle', text: 'Connecting…' },
  live: { icon: 'healthy', tone: 'ok', text: 'Live' },
  offline: { icon: 'warn', tone: 'warn', text: 'Offline' },
  refused: { icon: 'info', tone: 'idle', text: 'No live updates' },
} as const;

function ConnectionState() {
  const { icon, tone, text } = CONNECTIONS[connection.value];
  return (
    <p class={`connection tone-${tone}`}>
      <Icon name={icon} />
      {text}
    </p>
  );
}

const THEMES: readonly { readonly value: Theme; readonly icon: IconName; readonly label: string }[] = [
  { value: 'auto', icon: 'auto', label: 'System' },
  { value: 'light', icon: 'sun', label: 'Light' },
  { value: 'dark', icon: 'moon', label: 'Dark' },
];

function ThemeSwitch() {
  return (
    <fieldset class="segments" aria-label="Colours">
      {THEMES.map(({ value, icon, label }) => (
        <button
          key={value}
          type="button"
          title={label}
          aria-label={label}
          aria-pressed={theme.value === value}
          onClick={() => {
            theme.value = value;
          }}
        >
          <Icon name={icon} />
        </button>
      ))}
    </fieldset>
  );
}

function AccountBox() {
  const { kind, name } = account.value ?? {};
  if (kind === 'anonymous') return <p class="muted small">Authentication is off: no account is needed.</p>;
  return (
    <div class="account">
      <span class="name">{name}</span>
      <button type="button" class="plain" onClick={() => void attempt(signOut, 'You are signed out.')}>
        <Icon name="leave" />
        Sign out
      </button>
    </div>
  );
}
