// The rows of the table of lives as text: writes the row of this node, and reads the rows of the others. Each row
// is signed with the key of the deployment. Source: ADR 147.

import { createHmac, hkdfSync } from 'node:crypto';
import Type from 'typebox';
import type { Secrets } from '../../auth/secrets/secrets.ts';
import { compileShape } from '../../domain/errors/validation.ts';
import { jsonIn } from '../../domain/json/json.ts';
import { otherVersions, type ShownNode, unreachableNode } from '../../domain/nodes/nodes.ts';
import { isSameSecret } from '../../domain/text.ts';
import type { StoredLife } from '../../persistence/store.ts';
import type { ReachableLife } from '../reachable-life.ts';
import type { Standing } from '../rules/life-watch.ts';
import type { LifeRow } from '../rules/rows.ts';

/** Version of the rows, and of the protocol between nodes. */
const PROTOCOL = 1;

const Profile = Type.Object({
  protocol: Type.Integer(),
  address: Type.String({ maxLength: 512 }),
  version: Type.String({ maxLength: 64 }),
  since: Type.String({ maxLength: 32 }),
  follows_refusal: Type.Boolean(),
  /** HMAC of the others, with life and id of the node: write access to the database alone redirects no requests. */
  mac: Type.String({ maxLength: 64 }),
});
const Report = Type.Object({
  sees: Type.Array(Type.String({ maxLength: 16 }), { maxItems: 1_000 }),
  is_draining: Type.Boolean(),
  /** True in rows of nodes that take no programs; absent in others. */
  takes_no_programs: Type.Optional(Type.Boolean()),
  programs: Type.Integer(),
  calls: Type.Integer(),
});
/** The fields that the rows of all versions of the protocol have. */
const Stamp = Type.Object({ protocol: Type.Integer(), version: Type.String({ maxLength: 64 }) });
type Stamp = Type.Static<typeof Stamp>;
type Profile = Type.Static<typeof Profile>;
type Report = Type.Static<typeof Report>;
const STAMP = compileShape(Stamp, 'body');
const PROFILE = compileShape(Profile, 'body');
const REPORT = compileShape(Report, 'body');

/** A row that was read. */
export interface ReadLife {
  readonly stored: StoredLife;
  /** The version, set for a row of this or another version of the protocol. */
  readonly stamp: Stamp | undefined;
  readonly profile: Profile | undefined;
  readonly report: Report | undefined;
  /** The address at which this node reaches it. */
  readonly address: string;
  /** True for a row of this version of the protocol, signed with a key of this node. */
  readonly isMember: boolean;
}

export interface LifeRowsOptions {
  readonly own: ReachableLife;
  readonly version: string;
  /** The time at which this node started, as an ISO date. */
  readonly since: string;
  /** Secrets of the deployment: the first signs, all verify. */
  readonly secrets: Secrets;
  /** The present work of this node. */
  readonly report: () => Pick<ShownNode, 'programs' | 'calls' | 'isDraining'>;
  /** True when this node runs no programs that any node may run. Default: false. */
  readonly takesNoPrograms?: boolean | undefined;
  /** The shorter way to a node than the address in its row. Default: there is none. */
  readonly addressOf?: ((node: string) => string | undefined) | undefined;
  /** Gets a line for the operator. */
  readonly onNotice: (line: string) => void;
}

/** Writes rows with the first secret of the deployment, and reads those of any of its secrets. */
export class LifeRows {
  readonly #options: LifeRowsOptions;
  /** The lives of the last read. */
  #seen: ReadonlySet<string> = new Set();
  /** True while there is a row of a life of this process that others ended because its address refuses connections. */
  #isRefused = false;
  readonly #keys: readonly [Buffer, ...Buffer[]];

  constructor(options: LifeRowsOptions) {
    this.#options = options;
    const [first, ...others] = options.secrets;
    this.#keys = [macKeyOf(first), ...others.map(macKeyOf)];
  }

  storedOf({ life, node, counter, sees, followsRefusal }: LifeRow): StoredLife {
    const { own, version, since } = this.#options;
    const fields = {
      protocol: PROTOCOL,
      address: own.address,
      version,
      since,
      follows_refusal: followsRefusal,
    };
    const profile: Profile = { ...fields, mac: macOf(this.#keys[0], life, node, fields) };
    return {
      life,
      node,
      counter,
      profile: JSON.stringify(profile),
      state: this.reportOf(sees),
      end: undefined,
    };
  }

  /** The part of the row that each heartbeat writes again. */
  reportOf(sees: readonly string[]): string {
    const { report: present, takesNoPrograms = false } = this.#options;
    const { programs, calls, isDraining } = present();
    const takes = takesNoPrograms ? { takes_no_programs: true } : {};
    const report: Report = { sees: [...sees], is_draining: isDraining, ...takes, programs, calls };
    return JSON.stringify(report);
  }

  /**
   * The read lives by life. Names in the log, once, nodes with another version, and the own address when others ended a life of
   * this process because of it.
   */
  read(rows: readonly StoredLife[]): ReadonlyMap<string, ReadLife> {
    const { own, onNotice, since } = this.#options;
    const known = new Map(rows.map((stored) => [stored.life, this.#knownOf(stored)]));
    const isNew = ({ stored }: ReadLife) => stored.node !== own.node && !this.#seen.has(stored.life);
    const found = [...known.values()].filter(isNew).map((other) => shownNodeOf(other));
    for (const line of otherVersions([this.ownShownNode(own.life), ...found])) onNotice(line);
    this.#seen = new Set(known.keys());
    const isRefused = ({ stored: { node, end }, profile }: ReadLife) =>
      node === own.node && profile?.since === since && end?.cause === 'refused';
    const wasRefused = this.#isRefused;
    this.#isRefused = [...known.values()].some(isRefused);
    if (this.#isRefused && !wasRefused) onNotice(unreachableNode(` at ${own.address}`));
    return known;
  }

  ownShownNode(life: string): ShownNode {
    const { own, version, since, report } = this.#options;
    return {
      id: own.node,
      life,
      address: own.address,
      version,
      protocol: PROTOCOL,
      since,
      ...report(),
      state: 'live',
      ...(this.#isRefused && { isRefused: true }),
    };
  }

  #knownOf(stored: StoredLife): ReadLife {
    const profile = jsonIn(stored.profile);
    const report = jsonIn(stored.state);
    const read = PROFILE.accepts(profile) ? profile : undefined;
    const isMember =
      read !== undefined &&
      read.protocol === PROTOCOL &&
      this.#keys.some((key) => isSameSecret(read.mac, macOf(key, stored.life, stored.node, read)));
    const address = this.#options.addressOf?.(stored.node) ?? read?.address ?? '';
    const stamp = STAMP.accepts(profile) ? profile : undefined;
    const accepted = REPORT.accepts(report) ? report : undefined;
    return { stored, stamp, profile: read, report: accepted, address, isMember };
  }
}

function macKeyOf(secret: Uint8Array): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'stagedoor members: rows', 32));
}

function macOf(key: Buffer, life: string, node: string, profile: Omit<Profile, 'mac'>): string {
  const { protocol, address, version, since, follows_refusal: follows } = profile;
  const text = JSON.stringify([life, node, protocol, address, version, since, follows]);
  return createHmac('sha256', key).update(text).digest('base64url');
}

/** The row of a member as the rules see it. */
export function memberRowOf({ stored, profile, report }: ReadLife): LifeRow {
  const { life, node, counter, end } = stored;
  const {
    sees = [],
    is_draining: isDraining = false,
    takes_no_programs: takesNoPrograms = false,
  } = report ?? {};
  const followsRefusal = profile?.follows_refusal ?? false;
  return { life, node, counter, sees, isDraining, takesNoPrograms, followsRefusal, end };
}

/** The node as it is shown. */
export function shownNodeOf(
  { stored, stamp, profile, report, isMember }: ReadLife,
  standing: Standing = 'live',
): ShownNode {
  const { programs, calls } = (stored.end === undefined && report) || { programs: 0, calls: 0 };
  return {
    id: stored.node,
    life: stored.life,
    address: profile?.address,
    version: stamp?.version ?? '',
    protocol: stamp?.protocol,
    since: profile?.since ?? '',
    programs,
    calls,
    isDraining: report?.is_draining ?? false,
    state: stored.end ? 'ended' : isMember ? standing : 'foreign',
  };
}
