// The resources for which tokens of MCP clients are issued: the gateway, its endpoint `/mcp`, and each
// `/mcp/{template}`. Each is the address of the gateway with a path; what counts is the path, which all its
// addresses share. Source: RFC 8707, ADR 205.

import { LOCAL_HOST } from '../local-address.ts';
import { TEMPLATE_NAME } from '../template-name.ts';
import type { ResourcePath } from './account.ts';

const RESOURCE_PATH = new RegExp(`^(?:|/mcp|/mcp/${TEMPLATE_NAME})$`);

export function isResourcePath(path: string): path is ResourcePath {
  return RESOURCE_PATH.test(path);
}

/** True when a token for `audience` works on the routes of `resource`. One for the gateway works everywhere. */
export function opens(audience: ResourcePath, resource: ResourcePath): boolean {
  return audience === '' || audience === resource;
}

/** The address of the gateway for clients: one public address, or, without one, this machine by any of its names and ports. */
export class GatewayAddress {
  readonly #publicUrl: string | undefined;
  readonly #ports: () => readonly number[];
  readonly #scheme: 'http' | 'https';

  /** `publicUrl`: an origin. `ports`: those that are open, the first one first; read at each use. `scheme`: that of the ports. */
  constructor(
    publicUrl: string | undefined,
    ports: () => readonly number[],
    scheme: 'http' | 'https' = 'http',
  ) {
    this.#publicUrl = publicUrl;
    this.#ports = ports;
    this.#scheme = scheme;
  }

  /** The issuer of tokens, and the address of pages: an origin without a final slash. */
  get issuer(): string {
    return this.#publicUrl ?? `${this.#scheme}://127.0.0.1:${this.#ports()[0] ?? 0}`;
  }

  /** Whether there is one address, whatever the Host of a request. */
  get isPublic(): boolean {
    return this.#publicUrl !== undefined;
  }

  /** The address for the answer to a request that named this host; undefined when clients by that name cannot sign in. */
  baseFor(host: string | undefined): string | undefined {
    if (this.#publicUrl !== undefined) return this.#publicUrl;
    return host !== undefined && this.#isOwn(host) ? `${this.#scheme}://${host.toLowerCase()}` : undefined;
  }

  /** The path of a resource of this gateway, as a client or a token wrote it; undefined for any other text. */
  pathOf(resource: string): ResourcePath | undefined {
    // A parsed URL would hide `..`, escapes and an empty query.
    const [, origin = '', path = ''] =
      /^(https?:\/\/[^/?#@\\\s]+)((?:\/[a-z0-9-]+)*)\/?$/i.exec(resource) ?? [];
    if (!URL.canParse(origin) || !isResourcePath(path)) return undefined;
    const url = new URL(origin);
    const isOwn =
      this.#publicUrl === undefined
        ? url.protocol === `${this.#scheme}:` && this.#isOwn(url.host)
        : url.origin === this.#publicUrl;
    return isOwn ? path : undefined;
  }

  /** The one spelling of a resource. */
  normalise(resource: string): string | undefined {
    const path = this.pathOf(resource);
    return path === undefined ? undefined : `${new URL(resource).origin}${path}`;
  }

  #isOwn(host: string): boolean {
    const port = Number(/:(\d+)$/.exec(host)?.[1] ?? (this.#scheme === 'https' ? 443 : 80));
    return LOCAL_HOST.test(host) && this.#ports().includes(port);
  }
}

/** The ways in which users of MCP clients sign in. */
export interface SignIn {
  readonly address: GatewayAddress;
  /** Other authorization servers whose tokens are accepted. Default: none. */
  readonly issuers?: readonly string[];
  /** True when the gateway signs users in itself; false when only `issuers` do. Default: true. */
  readonly hasOwnServer?: boolean;
}
