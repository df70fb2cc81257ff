// The headers of a page that shows the API: it loads from this gateway only, runs no script but its own, and stands in
// nobody's frame. Source: Content Security Policy level 3.

import { createHash } from 'node:crypto';

/** Parts of a page that are written in the page itself, each without its tags. */
export interface InlineParts {
  readonly scripts: readonly string[];
  readonly styles: readonly string[];
}

/** Headers as `[name, value, …]`. Inline parts are allowed by their hash, and nothing by `unsafe-inline`. */
export function pageHeaders({ scripts, styles }: InlineParts): readonly string[] {
  const policy = {
    'default-src': ["'none'"],
    'script-src': ["'self'", ...scripts.map(hashOf)],
    'style-src': ["'self'", ...styles.map(hashOf)],
    'img-src': ["'self'", 'data:'],
    'font-src': ['data:'],
    'connect-src': ["'self'"],
    'base-uri': ["'none'"],
    'form-action': ["'none'"],
    'frame-ancestors': ["'none'"],
  };
  const directives = Object.entries(policy).map(([name, sources]) => `${name} ${sources.join(' ')}`);
  return [
    ...['Content-Security-Policy', directives.join('; ')],
    ...['Referrer-Policy', 'no-referrer', 'Cross-Origin-Opener-Policy', 'same-origin'],
  ];
}

/** The inline scripts and styles of a page, as a browser would hash them. */
export function inlinePartsOf(html: string): InlineParts {
  const contents = (pattern: RegExp): string[] =>
    [...html.matchAll(pattern)].map(([, content = '']) => content);
  return {
    scripts: contents(/<script>([\s\S]*?)<\/script>/g),
    styles: contents(/<style>([\s\S]*?)<\/style>/g),
  };
}

function hashOf(content: string): string {
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}
