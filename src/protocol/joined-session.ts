// The session of a legacy client with all templates at once: a session with each template that it uses, opened when it is
// first used. When one of them ends, the next call opens another: the client's own session goes on.

import { randomBytes } from 'node:crypto';
import {
  BehaviorSubject,
  defer,
  filter,
  finalize,
  firstValueFrom,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  ReplaySubject,
  Subject,
  switchMap,
  takeUntil,
} from 'rxjs';
import { mayUse } from '../domain/account.ts';
import type { ClientProfile, ServerMessage } from '../domain/client.ts';
import type { Answer, ExchangeRequest } from '../domain/exchange.ts';
import { type JsonObject, JsonText } from '../domain/json.ts';
import type { Peer } from '../domain/mcp.ts';
import { sessionLost } from '../domain/session-errors.ts';
import type { JoinedDirectory } from './joined-directory.ts';
import { JoinedGrant } from './joined-grant.ts';
import type { TemplateListChange } from './joined-lists.ts';
import { seenFrom } from './joined-names.ts';
import { answerHere, joinedExchange } from './joined-requests.ts';
import { asLegacy } from './legacy-over-modern.ts';
import { withListNotices } from './list-notices.ts';
import type { Backends, Owner, Session, Stay } from './ports.ts';
import type { Shelved } from './session-shelf.ts';

/** Whose session it is, and what it is made from. */
export interface JoinedSessionParts {
  readonly owner: Owner;
  readonly profile: ClientProfile;
  readonly peer: Peer;
  readonly directory: JoinedDirectory;
  readonly of: (template: string) => Backends;
  /** Hot: a list of any template changed. */
  readonly listChanges$: Observable<TemplateListChange>;
}

/** One client's session. Whoever opens it closes it. */
export class JoinedSession implements Shelved {
  readonly id = randomBytes(32).toString('base64url');
  readonly profile: ClientProfile;
  readonly peer: Peer;
  readonly isShared = false;
  readonly #parts: JoinedSessionParts;
  readonly #grant: JoinedGrant;
  readonly #inner = new Map<string, Promise<Session>>();
  readonly #ended = new ReplaySubject<string>(1);
  /** The sessions that messages come from, while somebody listens. */
  readonly #opened = new Subject<Session>();
  readonly #open = new Set<Session>();
  /** How many are under way. */
  readonly #calls = new BehaviorSubject(0);
  #logLevel: string | undefined;
  #holds = 0;
  #isOver = false;

  constructor(parts: JoinedSessionParts) {
    this.#parts = parts;
    this.#grant = new JoinedGrant(parts.owner);
    this.profile = parts.profile;
    this.peer = parts.peer;
  }

  get ownerId(): string {
    return this.#grant.owner.id;
  }

  get logLevel(): string | undefined {
    return this.#logLevel;
  }

  get isHeld(): boolean {
    return this.#holds > 0;
  }

  get ended$(): Observable<string> {
    return this.#ended;
  }

  get messages$(): Observable<ServerMessage> {
    const sessions$ = defer(() => merge(from([...this.#open]), this.#opened));
    const theirs$ = sessions$.pipe(mergeMap(heldWhileHeard));
    const changes$ = this.#grant.changesIn(this.#parts.listChanges$);
    return withListNotices(theirs$, changes$).pipe(takeUntil(this.#ended));
  }

  /** Takes note of what its owner may use by now, and ends its sessions with templates that he may not. */
  servesAs(owner: Owner): void {
    if (!this.#grant.take(owner)) return;
    for (const [template, opening] of this.#inner) {
      if (mayUse(owner, template)) continue;
      this.#inner.delete(template);
      opening.then((session) => session.close()).catch(() => undefined); // who opened it is told
    }
  }

  get opening(): Promise<void> | undefined {
    const openings = [...this.#open].flatMap(({ opening }) => opening ?? []);
    return openings.length === 0 ? undefined : Promise.all(openings).then(() => undefined);
  }

  exchange(request: ExchangeRequest): Observable<Answer> {
    return defer(() => {
      if (this.#isOver) throw sessionLost('it was closed');
      const release = this.#begin();
      const answers$ = request.method === 'logging/setLevel' ? this.#setLevel(request) : this.#route(request);
      return answers$.pipe(finalize(release));
    });
  }

  /** Its own sessions stay where they are; see `asLegacy`. */
  stay(): Stay {
    return { exchange: (request) => this.exchange(request), leave: this.#begin() };
  }

  async drained(): Promise<void> {
    await firstValueFrom(this.#calls.pipe(filter((calls) => calls === 0)));
  }

  notify(method: string, params: JsonObject): void {
    for (const session of this.#open) session.notify(method, params);
  }

  hold(): () => void {
    let isHeld = true;
    this.#holds += 1;
    return () => {
      if (isHeld) this.#holds -= 1;
      isHeld = false;
    };
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ended.next('closed');
    this.#ended.complete();
    this.#opened.complete();
    await Promise.allSettled([...this.#inner.values()].map(async (opening) => (await opening).close()));
  }

  /** A call is under way until the returned function is called. */
  #begin(): () => void {
    const release = this.hold();
    let isUnderWay = true;
    this.#calls.next(this.#calls.value + 1);
    return () => {
      if (!isUnderWay) return;
      isUnderWay = false;
      release();
      this.#calls.next(this.#calls.value - 1);
    };
  }

  #route(request: ExchangeRequest): Observable<Answer> {
    const { directory, profile } = this.#parts;
    return joinedExchange(request, directory, { owner: this.#grant.owner, profile }, (template, own) =>
      from(this.#sessionWith(template)).pipe(
        switchMap((session) => asLegacy(session, own)),
        map(seenFrom(template)),
      ),
    );
  }

  /** Each template hears of the level when it is first used, or now. */
  #setLevel(request: ExchangeRequest): Observable<Answer> {
    const level = request.params?.level;
    this.#logLevel = typeof level === 'string' ? level : undefined;
    for (const session of this.#open) this.#tell(session, request);
    return of(answerHere({ kind: 'result', result: JsonText.ofValue({}) }));
  }

  #sessionWith(template: string): Promise<Session> {
    const known = this.#inner.get(template);
    if (known !== undefined) return known;
    const opening = this.#openWith(template);
    this.#inner.set(template, opening);
    const forget = () => {
      if (this.#inner.get(template) === opening) this.#inner.delete(template);
    };
    opening.then((session) => session.ended$.subscribe(forget), forget);
    return opening;
  }

  async #openWith(template: string): Promise<Session> {
    const { of: backendsOf, profile } = this.#parts;
    const session = await backendsOf(template).openSession(this.#grant.owner, profile);
    if (this.#isOver || !mayUse(this.#grant.owner, template)) {
      await session.close();
      throw sessionLost('it was closed');
    }
    this.#open.add(session);
    session.ended$.subscribe(() => this.#open.delete(session));
    if (this.#logLevel !== undefined && session.peer.capabilities.logging !== undefined) {
      this.#tell(session, { method: 'logging/setLevel', params: { level: this.#logLevel } });
    }
    this.#opened.next(session);
    return session;
  }

  /** A template that refuses the level is one that logs what it likes. */
  #tell(session: Session, request: ExchangeRequest): void {
    session.exchange(request).subscribe({ error: () => undefined });
  }
}

/** What a session says; it does not expire meanwhile. */
function heldWhileHeard(session: Session): Observable<ServerMessage> {
  const { messages$, ended$ } = session;
  return defer(() => messages$.pipe(takeUntil(ended$), finalize(session.hold())));
}
