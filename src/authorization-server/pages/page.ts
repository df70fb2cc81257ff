// The pages of the authorization server: plain HTML without script, in the style of the console. Each page names the next step.

import { hash } from 'node:crypto';

/** An HTML text; all other texts are escaped where they are inserted. */
class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Fragment = string | number | Html | undefined | readonly Html[];

export function html(strings: TemplateStringsArray, ...fragments: readonly Fragment[]): Html {
  return new Html(
    strings.map((text, index) => `${index === 0 ? '' : written(fragments[index - 1])}${text}`).join(''),
  );
}

function written(fragment: Fragment): string {
  if (fragment instanceof Html) return fragment.text;
  if (typeof fragment === 'object') return fragment.map(({ text }) => text).join('');
  return String(fragment ?? '').replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export interface Page {
  readonly status: number;
  readonly text: string;
  /** Names and values in turn: `[name, value, ...]`. */
  readonly headers: readonly string[];
}

const STYLE = `:root{color-scheme:light dark;--ground:light-dark(#f6f7f9,#101217);--panel:light-dark(#fff,#181b21);--text:light-dark(#191c22,#e6e8ed);--muted:light-dark(#565d6d,#a3aab8);--line:light-dark(#dfe2e8,#2c313b);--edge:light-dark(#878e9c,#6b7382);--accent:light-dark(#2450c8,#94b2ff);--on-accent:light-dark(#fff,#0d1530);--bad:light-dark(#ae2118,#ff9c92);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--text);background:var(--ground)}
*{box-sizing:border-box}body{margin:0;padding:24px 16px}main{max-width:32rem;margin:6vh auto 0;padding:28px;background:var(--panel);border:1px solid var(--line);border-radius:8px;overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.3;margin:0 0 12px}p,dl,ul{margin:0 0 16px}.muted{color:var(--muted)}.bad{color:var(--bad)}
dt{color:var(--muted);font-size:.9rem}dd{margin:0 0 10px}ul{padding-left:1.2rem}label{display:block;margin-bottom:14px}
input{display:block;width:100%;font:inherit;padding:8px 10px;margin-top:4px;color:inherit;background:var(--ground);border:1px solid var(--edge);border-radius:6px}
.row{display:flex;gap:12px;flex-wrap:wrap}button{font:inherit;font-weight:600;min-height:40px;padding:6px 20px;border:1px solid var(--edge);border-radius:6px;color:inherit;background:var(--ground);cursor:pointer}
.choice{display:block;text-align:center;font-weight:600;padding:8px 20px;border:1px solid var(--edge);border-radius:6px;color:inherit;background:var(--ground);text-decoration:none}p:has(.choice){margin:12px 0 0}details{margin-top:16px}summary{cursor:pointer;margin-bottom:12px}a{color:var(--accent)}
.main{color:var(--on-accent);background:var(--accent);border-color:var(--accent)}.link{border:0;background:none;padding:0;min-height:0;font-weight:400;color:var(--accent);text-decoration:underline}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}`;

/** `formTargets`: origins and schemes to which the answers of forms lead, besides this gateway. */
export function page(
  status: number,
  title: string,
  content: Html,
  formTargets: readonly string[] = [],
): Page {
  const { text } = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${title} - stagedoor</title><style>${new Html(STYLE)}</style></head>
<body><main><h1>${title}</h1>${content}</main></body></html>
`;
  return { status, text, headers: headersOf(formTargets) };
}

interface FaultTexts {
  readonly what: string;
  /** One sentence about what to do. */
  readonly next: string;
  readonly back?: { readonly text: string; readonly path: string };
}

/** The page for a browser that cannot go on. */
export function faultPage(status: number, title: string, { what, next, back }: FaultTexts): Page {
  const link = back && html`<p><a href="${back.path}">${back.text}</a></p>`;
  return page(status, title, html`<p>${what}</p><p>${next}</p>${link}`);
}

/** The page for a browser without the place of its sign-in. `cookies`: the header that the browser sent. */
export function overPage(cookies: string | undefined): Page {
  const next = 'Go back to the program that sent you here, and connect again.';
  if (cookies !== undefined)
    return faultPage(400, 'This page is no longer valid', {
      what: 'It was answered already, open for more than ten minutes, or begun in another browser.',
      next,
    });
  return faultPage(400, 'This browser sends no cookies', {
    what: 'It blocks them, or the sign-in began in another browser.',
    next: `Allow cookies for this address. ${next}`,
  });
}

/** The page for a form that a page of another origin sent. */
export function foreignFormPage(): Page {
  return faultPage(403, 'Nothing was changed', {
    what: 'Another site sent this form.',
    next: 'Go back and use the form of this page.',
  });
}

/** The page for an address that began too many sign-ins. */
export function tooManyPage(): Page {
  return faultPage(429, 'Too many requests', {
    what: 'This address has asked too often.',
    next: 'Try again in a minute.',
  });
}

/** The page for an address with more than LIMITS.formFields parameters. */
export function tooLongPage(): Page {
  return faultPage(400, 'This request cannot be answered', {
    what: 'Its address has more than 100 parameters.',
    next: 'Go back to the program that sent you here, and connect again.',
  });
}

/** The page for an account without any of the rights that a client asks for. */
export function powerlessPage(clientName: string, username: string): Page {
  return faultPage(403, 'Your account cannot allow this', {
    what: `${clientName} asks for more than the account ${username} may do.`,
    next: 'Ask an admin of this gateway for the right, then connect again.',
  });
}

function headersOf(formTargets: readonly string[]): readonly string[] {
  const style = hash('sha256', STYLE, 'base64');
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${style}'`,
    // Chromium also checks the redirects that follow a form.
    `form-action ${["'self'", ...formTargets].join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ');
  return [
    ...['Content-Type', 'text/html; charset=utf-8', 'Content-Security-Policy', policy],
    ...['Cache-Control', 'no-store', 'X-Frame-Options', 'DENY', 'X-Content-Type-Options', 'nosniff'],
    // `no-referrer` would hide the Origin of forms. Web clients open these pages as pop-ups: no Cross-Origin-Opener-Policy.
    ...['Referrer-Policy', 'same-origin'],
  ];
}

export interface LoginContent {
  readonly action: string;
  /** The sentence that says why the sign-in is needed. */
  readonly intro: string;
  readonly username?: string | undefined;
  readonly problem?: string | undefined;
  readonly status?: number;
  /** Identity providers. */
  readonly providers: readonly {
    readonly id: string;
    readonly label: string;
  }[];
  /** False: only `admin` has a password here. */
  readonly takesPasswords: boolean;
}

export function loginPage(view: LoginContent): Page {
  const { action, intro, username, problem, status = 200, providers, takesPasswords } = view;
  const title = problem === undefined ? 'Sign in' : 'Sign in again';
  const form = html`<form method="post" action="${action}/login">
<label>User name <input name="username" value="${username}" autocomplete="username" autocapitalize="none" spellcheck="false" required maxlength="1024"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required maxlength="1024"></label>
<button class="main">Sign in</button></form>`;
  const choices = html`${providers.map(({ id, label }) => html`<p><a class="choice" href="${action}/provider/${id}">Sign in with ${label}</a></p>`)}`;
  // Open after an answer to the form.
  const otherWays = () =>
    html`<details${username === undefined ? undefined : html` open`}><summary>Other ways</summary>${form}</details>`;
  return page(
    status,
    title,
    html`<p class="muted">${intro}</p>
${problem === undefined ? undefined : html`<p class="bad" role="alert">${problem}</p>`}
${takesPasswords ? html`${form}${choices}` : html`${choices}${otherWays()}`}`,
  );
}

interface ConsentContent {
  readonly action: string;
  readonly formToken: string;
  readonly username: string;
  readonly clientName: string;
  /** The host or the admin that vouches for the name. */
  readonly origin: string;
  /** The computer that gets the answer, in words. */
  readonly destination: string;
  readonly scopes: readonly string[];
  /** Scopes that are not given to this client, in words. */
  readonly dropped: readonly string[];
  readonly templates: string;
  readonly views?: string;
  /** Lists of rules; a tool must pass all of them. Empty: all tools. */
  readonly tools: readonly string[];
  /** Servers that are used with an account of the user. */
  readonly accounts: readonly string[];
  /** The origin or scheme to which the answer leads the browser. Undefined: a page of this gateway. */
  readonly formTarget?: string | undefined;
  /** The code that the user entered for a command on another machine. */
  readonly code?: string | undefined;
}

export function consentPage(view: ConsentContent): Page {
  const { action, formToken, username, clientName, scopes, dropped, code, formTarget } = view;
  const hidden = html`<input type="hidden" name="form_token" value="${formToken}">`;
  return page(
    200,
    `Allow ${clientName}?`,
    html`${code === undefined ? undefined : html`<p class="bad">Allow this only if you started the command yourself a moment ago, and it shows the code <strong>${code}</strong>. If another person sent you the code or the link, deny it.</p>`}
<dl><dt>Program</dt><dd>${clientName}, ${view.origin}</dd>
<dt>The answer goes to</dt><dd>${view.destination}</dd>
<dt>Servers</dt><dd>${view.templates}</dd>
${
  view.views === undefined
    ? undefined
    : html`<dt>Views</dt><dd>${view.views}</dd>
`
}${
  view.tools.length === 0
    ? undefined
    : html`<dt>Tools</dt>${view.tools.map((rules) => html`<dd>only ${rules || 'none'}</dd>`)}
`
}${
  view.accounts.length === 0
    ? undefined
    : html`<dt>Your accounts</dt><dd>those that you have connected for ${view.accounts.join(', ')}</dd>
`
}<dt>It may</dt><dd><ul>${scopes.map((scope) => html`<li>${scope}</li>`)}</ul></dd></dl>
${dropped.length === 0 ? undefined : html`<p class="muted">It also asked to ${dropped.join(' and to ')}. Only clients that an admin added get this.</p>`}
<form method="post" action="${action}/consent">${hidden}
<p>It acts as <strong>${username}</strong> until you end its grant.</p>
<div class="row"><button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></div></form>
<form method="post" action="${action}/sign-out">${hidden}<p class="muted">Not you? <button class="link">Sign in with another account</button></p></form>`,
    formTarget === undefined ? [] : [formTarget],
  );
}

/** The page that asks for the code that a command shows; again after a `problem` with the one that was entered. */
export function codePage(problem?: string): Page {
  return page(
    problem === undefined ? 200 : 400,
    'Enter the code',
    html`<p class="muted">A command on another machine asks to be signed in. Enter the code that it shows; on the next pages you sign in and decide.</p>
${problem === undefined ? undefined : html`<p class="bad" role="alert">${problem}</p>`}
<form method="post" action="/oauth/device">
<label>Code <input name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false" required maxlength="20"></label>
<button class="main">Next</button></form>`,
  );
}

/** The page after the decision, where there is no client to which the browser could go. */
export function decidedPage(isAllowed: boolean, clientName: string): Page {
  const [title, what] = isAllowed
    ? ['Signed in', `${clientName} is signed in.`]
    : ['Denied', `${clientName} gets nothing.`];
  return page(200, title, html`<p>${what}</p><p>Go back to the terminal; this page can be closed.</p>`);
}
