// The architecture as data and checks: which room may import which, where each library may be used, which folders are
// tables. It is described in ARCHITECTURE.md; change both together.

import { posix } from 'node:path';
import { TRANSPORT_KINDS } from '../../../src/domain/instances/transport-kinds.ts';
import type { Rule, Source } from './source-text.ts';

/** From top to bottom. A room may import itself and every room of a lower line, not the others of its line. */
const layers: readonly (readonly string[])[] = [
  ['cli'],
  ['server'],
  ['http', 'index'],
  ['authorization-server'],
  ['metrics'],
  ['gateway'],
  ['registry', 'cluster', 'vault'],
  ['actors', 'protocol', 'auth'],
  ['transports', 'persistence', 'templates', 'discovery', 'config', 'connect', 'tracing'],
  ['balancing', 'counts', 'net', 'programs'],
  ['domain'],
];

/** Rooms whose folders are layers, from top to bottom; each may import those below it. */
const folderLayers: Readonly<Record<string, readonly string[]>> = {
  actors: ['changes', 'sessions', 'calls', 'fleet', 'instances', 'subscriptions'],
  domain: [
    ...['events', 'sessions', 'lists', 'calls', 'registration', 'views', 'nodes', 'errors', 'instances'],
    ...['mcp', 'time', 'memory', 'accounts', 'json'],
  ],
};

/** The rooms that may import each library. A library that is missing here may not be imported. */
const libraries: readonly (readonly [pattern: RegExp, rooms: readonly string[] | 'everywhere'])[] = [
  [/^typebox$/, 'everywhere'],
  [/^rxjs$/, 'everywhere'],
  [/^pino$/, 'everywhere'],
  [/^xstate$/, ['actors']],
  [/^(?:koa|koa-.*|@koa\/.*|koa2-swagger-ui|swagger-ui-dist|redoc)$/, ['http']],
  [/^oidc-provider$/, ['authorization-server']],
  [/^(?:cac|@clack\/prompts|yocto-spinner)$/, ['cli']],
  [/^@mikro-orm\/.*$/, ['persistence']],
  [/^prom-client$/, ['metrics']],
  [/^undici$/, ['discovery']],
  [/^dockerode$/, ['discovery']],
  [/^(?:jose|openid-client|bcrypt|rate-limiter-flexible|ioredis)$/, ['auth']],
  [/^oauth4webapi$/, ['vault']],
  [/^lru-cache$/, ['domain', 'protocol']],
  [/^ajv$/, ['templates']],
  [/^@opentelemetry\//, ['tracing']],
  [/^yaml$/, ['config', 'connect', 'discovery', 'cli']],
  [/^jsonc-parser$/, ['cli', 'templates']],
];

/** Pure rooms and folders: they may import only these packages, and of Node only functions on bytes: those of the global Buffer, and digests. */
const pureRooms: Readonly<Record<string, readonly string[]>> = {
  domain: ['typebox', 'rxjs', 'lru-cache', 'node:buffer', 'node:crypto'],
  balancing: ['typebox', 'rxjs'],
  counts: ['rxjs'],
  'cluster/rules': [],
};

/** Folders of variants, and the file that lists them. `isVariant`: tells a variant from its helpers. */
const tables: readonly { folder: string; table: string; isVariant: (source: Source) => boolean }[] = [
  { folder: 'src/http/routes', table: 'src/http/routes/index.ts', isVariant: () => true },
  { folder: 'src/cli/commands', table: 'src/cli/commands/index.ts', isVariant: () => true },
  {
    folder: 'src/connect',
    table: 'src/connect/index.ts',
    isVariant: (source) => exportsA('(?:readonly )?ConnectKind', source),
  },
  { folder: 'src/persistence/databases', table: 'src/persistence/database-url.ts', isVariant: () => true },
  {
    folder: 'src/discovery',
    table: 'src/gateway/sync.ts',
    isVariant: (source) => exportsA('Provider', source),
  },
];

/** Entry points, which no file imports by its name. */
const entries = ['src/index.ts', 'src/cli/main.ts', 'src/registry/files/yaml-thread.ts'];

export const layerRules: readonly Rule[] = [
  {
    name: 'imports go downward through the layers only',
    check: ({ path, imports }) => {
      const from = roomOf(path);
      if (!from) return [];
      if (levelOf(from) === -1) return [`the room ${from} is not in the layers of layers.ts`];
      return imports.filter(isRelative).flatMap((specifier) => {
        const target = posix.join(posix.dirname(path), specifier);
        const to = roomOf(target);
        if (!to) return [`imports ${specifier}, which is outside src`];
        if (to === 'index') return ['imports src/index.ts, which is for embedders only'];
        if (to === from || levelOf(to) > levelOf(from)) return [];
        return [`${from} may not import ${to} (${specifier})`];
      });
    },
  },
  {
    name: 'a folder of the domain or of the actors imports those below it only',
    check: ({ path, imports }) => {
      const from = folderLevel(path);
      if (from === -1) return ['its folder is not in the list of layers.ts'];
      return imports.filter(isRelative).flatMap((specifier) => {
        const target = posix.join(posix.dirname(path), specifier);
        const to = roomOf(target) === roomOf(path) ? folderLevel(target) : undefined;
        return from === undefined || to === undefined || to >= from ? [] : [`may not import ${specifier}`];
      });
    },
  },
  {
    name: 'only the transports import files of a kind of transport',
    check: ({ path, imports }) => {
      if (!roomOf(path) || roomOf(path) === 'transports') return [];
      return imports
        .filter((specifier) => isOfAKind(posix.join(posix.dirname(path), specifier)))
        .map((specifier) => `may not import ${specifier}`);
    },
  },
  {
    name: 'a library stays in its room',
    check: ({ path, imports }) => {
      const room = roomOf(path);
      if (!room) return [];
      return imports
        .filter((specifier) => !isRelative(specifier))
        .flatMap((specifier) => {
          const parts = specifier.startsWith('@') ? 2 : 1;
          const name = specifier.startsWith('node:') ? specifier : specifier.split('/', parts).join('/');
          const pure = path.startsWith('src/cluster/rules/') ? 'cluster/rules' : room;
          const allowed = pureRooms[pure];
          if (allowed)
            return allowed.includes(name)
              ? []
              : [`${pure} may import ${allowed.join(', ')} only, not ${name}`];
          if (name.startsWith('node:')) return [];
          const row = libraries.find(([pattern]) => pattern.test(name));
          if (!row) return [`the library ${name} has no room in layers.ts`];
          const [, rooms] = row;
          return rooms === 'everywhere' || rooms.includes(room)
            ? []
            : [`${name} lives in ${rooms.join(', ')}, not in ${room}`];
        });
    },
  },
  {
    name: 'a table lists every variant of its folder',
    check: (source, repository) => {
      const row = tables.find(({ folder }) => source.path.startsWith(`${folder}/`));
      if (!row || row.table === source.path || !row.isVariant(source)) return [];
      const specifier = posix.relative(posix.dirname(row.table), source.path);
      const wanted = specifier.startsWith('.') ? specifier : `./${specifier}`;
      return repository.get(row.table)?.imports.includes(wanted) ? [] : [`is missing from ${row.table}`];
    },
  },
  {
    // A bound of one room is read where its code is: at the top of the file that keeps it.
    name: 'a bound of LIMITS is used by two rooms',
    check: ({ path, code }, repository) => {
      if (path !== 'src/domain/limits.ts') return [];
      const uses = [...repository.values()].flatMap((source) => {
        const room = source.path === path ? undefined : roomOf(source.path);
        return room ? [...source.code.matchAll(/\bLIMITS\.(\w+)/g)].map(([, key]) => ({ key, room })) : [];
      });
      return [...code.matchAll(/^ {2}(\w+): /gm)].flatMap(([, key]) => {
        const rooms = new Set(uses.filter((use) => use.key === key).map(({ room }) => room));
        return rooms.size < 2 ? [`${key} is used in ${[...rooms].join() || 'no room'} only`] : [];
      });
    },
  },
  {
    name: 'every source file is imported',
    check: ({ path }, repository) => {
      if (!roomOf(path) || entries.includes(path) || isKindOfTransport(path)) return [];
      const isImported = [...repository.values()].some(
        (other) =>
          roomOf(other.path) &&
          other.imports.some((specifier) => posix.join(posix.dirname(other.path), specifier) === path),
      );
      return isImported ? [] : ['is not imported'];
    },
  },
];

/** `src/transports/load-transport.ts` imports it by the name of the kind. */
function isKindOfTransport(path: string): boolean {
  return TRANSPORT_KINDS.some((kind) => path === `src/transports/${kind}/${kind}.ts`);
}

function isOfAKind(path: string): boolean {
  return TRANSPORT_KINDS.some((kind) => path.startsWith(`src/transports/${kind}/`));
}

/** `src/http/routes/x.ts` is in the room `http`, `src/index.ts` in the room `index`; other trees have no rooms. */
function roomOf(path: string): string | undefined {
  return /^src\/([^/]+?)(?:\.ts)?(?:\/|$)/.exec(path)?.[1];
}

function levelOf(room: string): number {
  return layers.findIndex((rooms) => rooms.includes(room));
}

/** Undefined in other rooms. Files of the domain without a folder are below its folders; -1 for any other place that is not in the list. */
function folderLevel(path: string): number | undefined {
  const [, room = '', folder] = /^src\/([^/]+)\/(?:([^/]+)\/)?/.exec(path) ?? [];
  const folders = folderLayers[room];
  if (folder === undefined && room === 'domain') return folders?.length;
  return folders?.indexOf(folder ?? '');
}

function isRelative(specifier: string): boolean {
  return specifier.startsWith('.');
}

function exportsA(type: string, { code }: Source): boolean {
  return new RegExp(
    `^export const \\w+:\\s*${type}\\b|\\bsatisfies ${type}\\b|\\)\\s*:\\s*${type}\\b`,
    'm',
  ).test(code);
}
