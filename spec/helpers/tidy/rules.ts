// The rules of style that are checked on the text of files. A rule checks one file and may read the others. Layers,
// libraries and tables are in layers.ts; biome.json and tsconfig.json have the other rules.

import { layerRules } from './layers.ts';
import { lineAt, type Rule } from './source-text.ts';

const longestFileLines = 450;
const longestSpecLines = 500;
/** Code wraps at 110, a comment may be a little longer. Diagrams and examples, which have two spaces in a row, are free. */
const longestComment = 130;
/** Specs of real processes and sockets, which may wait for real time. */
const mayWait = /^spec\/(?:gateway|helpers|net|programs|runner|transports|fixtures|system)/;

/** The files that show or store times, or compare them with shown or stored ones. Waits and ages use a monotonic clock (ADR 386). */
const readsWallClock: ReadonlySet<string> = new Set([
  // The clock is passed on.
  'src/gateway/endpoint/mcp-parts.ts',
  // Times of events.
  'src/actors/calls/call-events.ts',
  'src/actors/calls/dispatcher.ts',
  'src/domain/events/events.ts',
  'src/gateway/endpoint/withheld-items.ts',
  'src/gateway/compose.ts',
  'src/gateway/gateway.ts',
  'src/gateway/internals.ts',
  'src/registry/active-registry.ts',
  'src/registry/registry-changes.ts',
  'src/registry/pinned/pinned-scope.ts',
  // The end of a certificate.
  'src/net/tls/certificate-end.ts',
  'src/server/sockets/public-tls.ts',
  // The age of a list that outlives the gateway.
  'src/protocol/aggregate/lists/stored-lists.ts',
  // When a file was written.
  'src/registry/files/file-at-rest.ts',
  // Times in answers, samples and traces.
  'src/actors/sessions/client-sessions.ts',
  'src/actors/sessions/rows/session-keeper.ts',
  'src/actors/instances/instance-ref.ts',
  'src/cluster/node-table/node-table.ts',
  'src/http/routes/gateway/health.ts',
  'src/metrics/samples.ts',
  'src/server/nodes/other-nodes.ts',
  'src/tracing/spans.ts',
  // Stored times of the registry, of accounts and of the audit log, and the comparison of clocks.
  'src/auth/accounts/accounts.ts',
  'src/auth/audit/audit-log.ts',
  'src/auth/auth.ts',
  'src/auth/grants/access-tokens.ts',
  'src/auth/authenticator.ts',
  'src/auth/credential-verifier.ts',
  'src/auth/token-ends.ts',
  'src/auth/accounts/first-admin.ts',
  'src/auth/limits/rate-limiter.ts',
  'src/auth/session-revalidator.ts',
  'src/auth/accounts/tokens.ts',
  // Expiries of grants, codes and keys, which all nodes compare.
  'src/auth/issuers/company-accounts.ts',
  'src/auth/grants/grants.ts',
  'src/auth/issuers/issuers.ts',
  'src/auth/grants/oauth-keys.ts',
  'src/authorization-server/adapter.ts',
  'src/authorization-server/assertion.ts',
  'src/authorization-server/clients/client-documents.ts',
  'src/authorization-server/pages/device-pages.ts',
  'src/authorization-server/clients/clients.ts',
  'src/authorization-server/pages/interaction.ts',
  'src/authorization-server/sign-ins/provider-sign-ins.ts',
  'src/authorization-server/oauth-library.ts',
  'src/authorization-server/refresh-grant.ts',
  'src/authorization-server/oauth-endpoints.ts',
  'src/authorization-server/expired-rows.ts',
  'src/authorization-server/authorization-server.ts',
  'src/vault/oauth-backends.ts',
  'src/vault/own-clients.ts',
  'src/vault/account-connections.ts',
  'src/vault/authorization-flow.ts',
  'src/vault/known-tokens.ts',
  'src/vault/refreshes.ts',
  'src/vault/vault.ts',
  'src/vault/connect-links.ts',
  'src/gateway/endpoint/used-confirmations.ts',
  'src/authorization-server/sign-ins/sign-ins.ts',
  'src/server/nodes/clock-skew.ts',
  'src/registry/kinds/instance-registry.ts',
  'src/registry/kinds/view-registry.ts',
  'src/server/server-auth.ts',
  // An expiry that a login program prints, that of a cookie, and that of a state that another node may read.
  'src/discovery/login-program.ts',
  'src/transports/http/sessions/cookie-jar.ts',
  'src/protocol/modern/modern-affinity.ts',
  'src/protocol/modern/state-cipher.ts',
]);

/** Where timers are set and clocks are read. A command ends with its process, and shows or stores most times that it reads. */
const hasClocks = (path: string): boolean =>
  path === 'src/domain/time/clock.ts' || path.startsWith('src/cli/');

/**
 * Where the clock of the process is used; all else gets a clock. Commands and the server begin there, and embedding programs
 * need not pass one. The others wait for what has no simulated time.
 */
const usesSystemClock: readonly (readonly [path: string, reason: string])[] = [
  ['src/cli/', 'a command'],
  ['src/server/', 'the parts of the server, and its sockets'],
  ['src/gateway/gateway.ts', 'the default of embedding programs'],
  ['src/domain/time/clock.ts', 'its definition'],
  ['src/domain/time/task-scheduler.ts', 'the work of the processor in one turn'],
  ['src/http/replies/unread-answers.ts', 'the timeouts of sockets'],
  ['src/persistence/', 'databases'],
  ['src/discovery/', 'engines, clusters, and programs that log in'],
  ['src/programs/', 'processes and their groups'],
  ['src/gateway/doctor/program-probe.ts', 'programs'],
  ['src/templates/command-exposure.ts', 'file systems that do not answer'],
  ['src/config/read-file.ts', 'pipes that other programs write'],
  ['src/tracing/', 'spans, whose collectors keep real time'],
];

/** The transports themselves, their table, and what speaks of the transports of MCP clients. */
const namesTransports =
  /^src\/(?:transports\/|domain\/instances\/transport-kinds|connect\/|discovery\/|.*\/connect[./])/;

/** Files that read or write the command of an instance as a field, or another command. */
const readsCommands =
  /^src\/(?:cli\/|discovery\/|templates\/|domain\/(?:registration\/|instances\/transport-kinds)|http\/records\/server-input)/;

/** An exported declaration, with its name. */
const DECLARED = /^export (?:abstract )?(?:async )?(?:const|function\*?|class|interface|type) (\w+)/gm;

/** An exported type, with its name. */
const EXPORTED_TYPE = /^export (?:interface|type) (\w+)/gm;

/** A type or a constant that only its file has, with its name. */
const OWN = /^(?:(?:abstract )?(?:class|interface|type) (\w+)|const ([A-Z][A-Z\d_]+)\b)/gm;

/** What each variant of a table exports under the same name: a kind of transport, the migrations of a database. */
const VARIANTS: ReadonlySet<string> = new Set(['open', 'migrations']);

const isSource = (path: string): boolean => path.startsWith('src/');
const isSpec = (path: string): boolean => path.endsWith('.spec.ts');
const everywhere = (): boolean => true;

/** English of no native speaker, where a plain word exists. Fine are "there is no", "is no longer" and "is no other". */
export const STIFF_ENGLISH =
  /(?<!\b[Tt]here(?:\s|\*|\/\/)+)\b(?:is|are) no (?!longer\b|more\b|other\b)[a-z]+|\banew\b/g;

/**
 * The name of a TypeScript file in a text. A file of another project follows its name: `owner/project, src/a.ts`. `x.ts` stands for
 * any, and a `….config.ts` is at the root.
 */
export const NAMED_FILE =
  /(?<![\w.<>*/…-]|\w\/\w+, )(?:\.\.\/)*((?:[\w-]+\/)*(?!x\.)\w[\w.-]*(?<!\.config)\.tsx?)\b/g;

/** Every rule of the repository. */
export const rules: readonly Rule[] = [
  ...layerRules,
  {
    name: 'a source file starts with a comment that says what it owns',
    check: ({ path, text }) => (isSource(path) && !/^\/[/*]/.test(text) ? ['starts without a comment'] : []),
  },
  {
    name: `a source file has at most ${longestFileLines} lines`,
    check: ({ path, text }) => {
      const lines = text.trimEnd().split('\n').length;
      return isSource(path) && lines > longestFileLines ? [`has ${lines} lines`] : [];
    },
  },
  {
    name: `a file of specs has at most ${longestSpecLines} lines`,
    check: ({ path, text }) => {
      const lines = text.trimEnd().split('\n').length;
      return path.startsWith('spec/') && lines > longestSpecLines ? [`has ${lines} lines`] : [];
    },
  },
  {
    name: `a comment has at most ${longestComment} characters in a line`,
    check: ({ path, text }) =>
      text.split('\n').flatMap((line, index) => {
        const isLong = line.length > longestComment && isSource(path) && /^\s*(?:\/[/*]|\*) /.test(line);
        return isLong && !/\S {2,}\S|\*? {2,}\S/.test(line.trim())
          ? [`line ${index + 1} has ${line.length}`]
          : [];
      }),
  },
  {
    name: 'comments and texts say what is not so, and what is done again, in plain English',
    check: ({ path, text }) =>
      isSource(path) || path.startsWith('web/') ? issues(text, text, STIFF_ENGLISH) : [],
  },
  {
    name: 'no file is called utils',
    check: ({ path }) => (/\/utils?\.\w+$/.test(path) ? ['says nothing by its name'] : []),
  },
  inCode('nothing is cast through unknown', everywhere, /\bas\s+unknown\s+as\b/g),
  inComments('the compiler is not silenced', everywhere, /@ts-(?:ignore|expect-error|nocheck)/g),
  inComments(
    'a docblock says what a function gives, without Returns',
    isSource,
    /\/\*\*\s+(?:\* )?Returns\b/g,
  ),
  inComments('the docblock of a callback begins with Called', isSource, /\/\*\*\s+(?:\* )?It is called\b/g),
  {
    name: 'the docblock of a boolean says when it is true',
    check: ({ path, text }) => {
      const others =
        /\/\*\*\s+(?:\* )?(?=[^\s*])(?!True\b|False\b|Whether\b)(?:[^*]|\*(?!\/))*\*\/\s*(?:readonly )?#?\w+\??: boolean\b/g;
      return isSource(path) ? issues(text, text, others) : [];
    },
  },
  {
    name: 'a docblock belongs to the declaration below it',
    check: ({ text }) => issues(text, text, /\*\/\s*\n\s*\/\*\*/g),
  },
  {
    name: 'a comment names files that exist',
    check: ({ comments }, repository) => {
      const paths = [...repository.keys()];
      const named = [...comments.matchAll(NAMED_FILE)];
      return named.flatMap(({ 1: file, index }) =>
        paths.some((path) => path === file || path.endsWith(`/${file}`))
          ? []
          : [`line ${lineAt(comments, index)}: ${file}`],
      );
    },
  },
  {
    name: 'an exported class has a docblock',
    check: ({ path, code, text }) => {
      if (!isSource(path)) return [];
      return [...code.matchAll(/^export (?:abstract )?class (\w+)/gm)].flatMap(({ 1: name, index }) => {
        const before = text.slice(0, index).trimEnd();
        const isDocblock = before.endsWith('*/') && before.startsWith('/**', before.lastIndexOf('/*'));
        return isDocblock ? [] : [`${name} has none`];
      });
    },
  },
  {
    // The same name for two things has to be looked up at each use.
    name: 'an exported name is declared once, and no other type or constant has it',
    check: ({ path }, repository) => {
      if (path !== 'src/index.ts') return [];
      const places = new Map<string, Set<string>>();
      const sources = [...repository.values()].filter((source) => isSource(source.path));
      for (const source of sources)
        for (const [, name = ''] of source.code.matchAll(DECLARED))
          if (!VARIANTS.has(name)) places.set(name, (places.get(name) ?? new Set()).add(source.path));
      for (const source of sources)
        for (const [, type, name = type ?? ''] of source.code.matchAll(OWN))
          places.get(name)?.add(source.path);
      return [...places].flatMap(([name, files]) =>
        files.size > 1 ? [`${name} is in ${[...files].join(', ')}`] : [],
      );
    },
  },
  {
    // knip does not report a type that an exported function of the same file names.
    name: 'an exported type is used in another file',
    check: ({ path }, repository) => {
      if (path !== 'src/index.ts') return [];
      const files = new Map<string, number>();
      for (const { code } of repository.values())
        for (const word of new Set(code.match(/\w+/g))) files.set(word, (files.get(word) ?? 0) + 1);
      return [...repository.values()].flatMap((source) =>
        [...(isSource(source.path) ? source.code.matchAll(EXPORTED_TYPE) : [])].flatMap(([, name = '']) =>
          files.get(name) === 1 ? [`${name} of ${source.path} is not`] : [],
        ),
      );
    },
  },
  inCode(
    'the name of a bound begins with MAX or MIN',
    everywhere,
    /\b(?:MOST|LONGEST|LARGEST|DEEPEST|LEAST|SHORTEST|SMALLEST)_[A-Z_]+/g,
  ),
  inComments('nothing is left for later in a comment', everywhere, /\b(?:TODO|FIXME|XXX)\b/g),
  inCode(
    'timers are set and clocks are read by Clock only',
    (path) => isSource(path) && !hasClocks(path),
    new RegExp(
      [
        /(?<![.\w])set(?:Timeout|Interval)\b|\bAbortSignal\s*\.\s*timeout\b/,
        /\bperformance\s*\.|\bhrtime\b|\bDate\s*\.\s*now\b|\bnew\s+Date\s*(?!\s*\(\s*[^)\s])|(?<!new\s+)\bDate\s*\(/,
        /(?<![.\w])(?:timer|interval|timeout|delay|(?:debounce|throttle|audit|buffer|sample)Time)\s*\(/, // of rxjs
      ]
        .map(({ source }) => source)
        .join('|'),
      'g',
    ),
  ),
  inCode(
    'the wall clock is read only where a time is shown or stored',
    (path) => isSource(path) && !hasClocks(path) && !readsWallClock.has(path),
    /(?<!\.)\bwallAt\b|(?<!Pick<Clock, )\bwall\b/g,
  ),
  inCode(
    'the clock of the process is passed on, not taken',
    (path) => isSource(path) && !usesSystemClock.some(([start]) => path.startsWith(start)),
    /\bsystemClock\b/g,
  ),
  {
    name: 'a kind of transport is asked for by its traits, not by its name',
    check: ({ path, text }) =>
      isSource(path) && !namesTransports.test(path)
        ? issues(text, text, /(?<!typeof )\btransport\s*[!=]==\s*'|'in-process'/g)
        : [],
  },
  inCode(
    'an instance that runs a program is known by runsProgram',
    (path) => isSource(path) && !readsCommands.test(path),
    /\bcommand\s*[!=]==\s*undefined\b/g,
  ),
  {
    name: 'no catch is empty',
    check: ({ code, text }) => {
      const forms =
        /\bcatch\s*(?:\([^)]*\)\s*)?(\{\s*\})|\.catch\(\s*(?:\([^)]*\)|\w+)\s*=>\s*(\{\s*\})\s*\)/dg;
      return [...code.matchAll(forms)].flatMap((match) => {
        const [start, end] = match.indices?.[1] ?? match.indices?.[2] ?? [0, 0];
        // An empty block may contain a comment that says why it is safe.
        return text.slice(start + 1, end - 1).trim() ? [] : [`line ${lineAt(text, start)}: an empty catch`];
      });
    },
  },
  inCode(
    'a module keeps no state',
    isSource,
    /^(?:export )?(?:let|var) |^(?:export )?const \w+(?:: (?!Readonly(?:Map|Set)\b)[^=]+)? = (?:new (?:Weak)?(?:Map|Set)\b|new (?:\w*Subject|EventEmitter|LRUCache)\b|\[\];|\{\};)/gm,
  ),
  inCode(
    'a unit spec does not wait for real time',
    (path) => isSpec(path) && !mayWait.test(path),
    /\bsleep\s*\(|\bsetTimeout\b/g,
  ),
  inCode(
    'a spec waits for a condition with a bound: helpers/eventually.ts',
    (path) => path.startsWith('spec/'),
    /\bwhile \((?!.*performance\.now).*\) await (?:turn|nextTurn|passTurns|new Promise\((?:\(resolve\) => )?set)/g,
  ),
  {
    name: 'only the system tier needs servers, browsers and containers',
    check: ({ path, imports }) =>
      isSpec(path) && !path.startsWith('spec/system/')
        ? imports.filter((specifier) => /\/(?:services|browser|podman)\.ts$/.test(specifier))
        : [],
  },
  {
    name: 'a spec takes its suite from helpers/suite.ts',
    check: ({ path, imports }) => (isSpec(path) && imports.includes('uvu') ? ['imports uvu itself'] : []),
  },
];

function inCode(name: string, applies: (path: string) => boolean, pattern: RegExp): Rule {
  return {
    name,
    check: ({ path, code, text }) => (applies(path) ? issues(code, text, pattern) : []),
  };
}

function inComments(name: string, applies: (path: string) => boolean, pattern: RegExp): Rule {
  return {
    name,
    check: ({ path, comments, text }) => (applies(path) ? issues(comments, text, pattern) : []),
  };
}

function issues(searched: string, text: string, pattern: RegExp): string[] {
  return [...searched.matchAll(pattern)].map((match) => {
    const start = match.index + (/^\s*/.exec(match[0])?.[0].length ?? 0);
    return `line ${lineAt(text, start)}: ${text.slice(start, match.index + match[0].length).split('\n')[0]}`;
  });
}
