// Another authorization server as far as a resource sees it: its metadata, its keys, and tokens that it signed, or that an attacker made.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT } from 'jose/jwt/sign';

export interface TokenParts {
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly key?: KeyObject | Uint8Array;
}

export class KeyServer {
  /** Paths of the requests so far. */
  readonly asked: string[] = [];
  /** Answers instead of the server, for all paths but those of metadata. */
  answer: RequestListener | undefined;
  issuer = '';
  readonly #server = createServer((request, response) => {
    const { url = '' } = request;
    this.asked.push(url);
    if (this.answer !== undefined && !url.startsWith('/.well-known/')) return this.answer(request, response);
    const body: unknown =
      url === '/.well-known/openid-configuration'
        ? { issuer: this.issuer, jwks_uri: `${this.issuer}/keys` }
        : url === '/keys'
          ? this.#keys()
          : undefined;
    response.writeHead(body === undefined ? 404 : 200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(body ?? {}));
  });
  #pairs = new Map<string, KeyObject>();
  #wall: () => number;

  constructor(wall: () => number) {
    this.#wall = wall;
    this.rotate('their-1');
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.issuer = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this.issuer;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A new key takes the place of the others. */
  rotate(kid: string): void {
    this.#pairs = new Map([[kid, generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey]]);
  }

  async token({ claims = {}, header = {}, key }: TokenParts = {}): Promise<string> {
    const [[kid, own] = ['', undefined]] = [...this.#pairs];
    const seconds = Math.floor(this.#wall() / 1000);
    const all = { iss: this.issuer, sub: 'ada', iat: seconds, exp: seconds + 600, ...claims };
    const jwt = new SignJWT(all).setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid, ...header });
    const signing = key ?? own;
    if (signing === undefined) throw new Error('the server has no key');
    return `Bearer ${await jwt.sign(signing)}`;
  }

  #keys() {
    const keys = [...this.#pairs].map(([kid, key]) => {
      const { d: _, ...jwk } = key.export({ format: 'jwk' });
      return { ...jwk, kid, alg: 'ES256', use: 'sig' };
    });
    return { keys };
  }
}
