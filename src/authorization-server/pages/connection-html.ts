// The pages at which users connect their accounts at servers that want one, in the style of the others: plain HTML
// without script.

import type { AccountConnection } from '../../domain/instances/account-connection.ts';
import { html, type Page, page } from './page.ts';

interface ConnectContent {
  readonly action: string;
  readonly formToken: string;
  readonly template: string;
  /** The origin of the server. */
  readonly server: string;
  /** The provider that has the account, where its owner decides. */
  readonly provider: string;
  /** The owner of the connection: a user, or all callers. */
  readonly whose: string;
  readonly username: string;
  readonly scopes: readonly string[];
  readonly isConnected: boolean;
  /** Chromium also checks the redirects that follow a form. */
  readonly formTarget: string;
}

export function connectPage(view: ConnectContent): Page {
  const { action, formToken, template, server, provider, username, scopes } = view;
  const hidden = html`<input type="hidden" name="form_token" value="${formToken}">`;
  return page(
    200,
    `Connect an account at ${template}?`,
    html`<dl><dt>Server</dt><dd>${template}, at ${server}</dd>
<dt>You sign in there at</dt><dd>${provider}</dd>
${scopes.length === 0 ? undefined : html`<dt>It is asked for</dt><dd>${scopes.join(', ')}</dd>`}
<dt>The account will be used for</dt><dd>${view.whose}</dd></dl>
${view.isConnected ? html`<p class="muted">An account is connected already. Connecting again replaces it.</p>` : undefined}
<p>You are signed in here as <strong>${username}</strong>. Continue only if a program of yours sent you to this page.</p>
<form method="post" action="${action}/connect">${hidden}<div class="row"><button class="main">Continue to ${new URL(provider).host}</button></div></form>
<form method="post" action="${action}/sign-out">${hidden}<p class="muted">Not you? <button class="link">Sign in with another account</button></p></form>`,
    [view.formTarget],
  );
}

/** The page at an address of another user, for which this one must not connect an account. */
export function othersPage(action: string, formToken: string, username: string): Page {
  return page(
    403,
    'This address is for another user',
    html`<p>You are signed in as <strong>${username}</strong>, and a program of another user made this address. If it came in a message, close this page.</p>
<form method="post" action="${action}/sign-out"><input type="hidden" name="form_token" value="${formToken}">
<p>If it is yours: <button class="link">Sign in with another account</button></p></form>`,
  );
}

export function connectedPage(): Page {
  return page(
    200,
    'The account is connected',
    html`<p>Close this page and go back to the program: it goes on by itself, or repeat what you asked it for.</p>
<p class="muted"><a href="/connections">Your connections</a></p>`,
  );
}

export function listPage(
  formToken: string,
  username: string,
  connections: readonly (AccountConnection & { readonly templates: readonly string[] })[],
): Page {
  const hidden = html`<input type="hidden" name="form_token" value="${formToken}">`;
  const rows = connections.map(
    ({ id, templates, resource, issuer, state, reason }) =>
      html`<li><strong>${templates.join(', ') || new URL(resource).host}</strong><br>${resource}<br>
<span class="muted">${state === 'connected' ? 'Connected' : `Must be connected again: ${reason ?? 'it has ended'}`}, by ${issuer}</span>
<form method="post" action="/connections/disconnect">${hidden}<input type="hidden" name="connection" value="${id}">
<p><button aria-label="Disconnect ${resource}">Disconnect</button></p></form></li>`,
  );
  return page(
    200,
    'Your connected accounts',
    html`<p>Programs that you have signed in use these accounts when they act for <strong>${username}</strong>.</p>
${connections.length === 0 ? html`<p class="muted">None yet. A program tells you the address when a server needs your account.</p>` : html`<ul>${rows}</ul>`}
<form method="post" action="/connections/sign-out">${hidden}<p class="muted">Not you? <button class="link">Sign in with another account</button></p></form>`,
  );
}
