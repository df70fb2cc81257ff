// How operations are grouped: by surface, and within it by what they are about. The path decides.

/** One group. */
export interface Tag {
  readonly name: string;
  readonly description: string;
  /** Paths that belong to it; the first group that fits counts. */
  readonly paths: RegExp;
}

/** In the order in which they are shown. */
export const TAGS: readonly Tag[] = [
  {
    name: 'MCP',
    description: 'For MCP clients: each template, and all of them, as one MCP server.',
    paths: /^\/mcp(?:\/sse|\/:template(?:\/(?:mcp|sse|messages))?)?$/,
  },
  {
    name: 'Templates',
    description: 'Surface A: calls by template. The gateway chooses a healthy instance.',
    paths: /^\/mcp\//,
  },
  {
    name: 'Gateway',
    description: 'Surface A: the registry, its instances, health, statistics and events.',
    paths: /^\/(?:events$|gateway\/(?!audit(?:\/|$)))/,
  },
  {
    name: 'Servers',
    description: 'Surface B: servers by id, calls to one of them, health and statistics.',
    paths: /^\/(?:servers|tools|health|stats)(?:\/|$)/,
  },
  {
    name: 'Accounts',
    description: 'Surface B: login, users, API keys and the audit log.',
    paths: /^\/(?:auth|gateway\/audit)(?:\/|$)/,
  },
  {
    name: 'Documents',
    description: 'This description and the pages that show it.',
    paths: /^\/(?:$|(?:docs|redoc|openapi\.json)(?:\/|$))/,
  },
  { name: 'Process', description: 'For the operator of this process.', paths: /^/ },
];

/** The group of a path. */
export function tagOf(path: string): string {
  return TAGS.find(({ paths }) => paths.test(path))?.name ?? '';
}
