// The settings about registries of MCP servers: the one that is searched, and the gateway as one.

import * as types from './setting-types.ts';
import { setting } from './setting-types.ts';

export const REGISTRY_SETTINGS = {
  url: setting<string>({
    key: 'registry.url',
    kind: types.webAddress,
    default: 'https://registry.modelcontextprotocol.io',
    doc: 'Registry of MCP servers that `template search` asks, with the API v0.1 of the official one. Nothing else asks it.',
  }),
  isPublic: setting({
    key: 'registry.public',
    mustAgree: true,
    kind: types.boolean,
    default: false,
    doc: 'Whether `GET /v0.1/servers` answers everyone, without credentials and for pages of all origins, with the names and addresses of all templates that have instances. Default: by rights.',
  }),
} as const;
