import type { ErrorCode } from '../../../server/errors.ts'
import type { Role } from '../../../server/api/roles.ts'
import type { Admin } from '../../support/admin.ts'

/** What one operation promises, whoever asks for it, and how. */
export type Row<A = Admin> = {
  /** the least one that may */
  role: Role | null,
  /** what there has to be before; returns parameters of the path that are known only then */
  given?: (admin: A) => Params | void | Promise<Params | void>,
  path?: Params,
  query?: Record<string, string>,
  body?: Record<string, unknown>,
  /** what a form sends, where its fields have other names than those of path, query and body */
  fields?: (body: Record<string, unknown>) => Record<string, string>,
  /** the state that the sender has seen, where a call without it is refused: `tag` for If-Match, `field` for a form */
  seen?: { tag: string, field: (admin: A) => string },
  /** what the deck or the host is asked for, beside who asks */
  does?: object,
  /** types of the events by which the history tells it */
  tells?: string[],
  /** a part of the answer */
  answer?: object | string,
  location?: string,
  /** checks what has become of it */
  after?: (admin: A) => void,
  /** what is refused; default: a field or a parameter that there is not */
  bad?: { path?: Params, query?: Record<string, string>, body?: Record<string, unknown>, code: ErrorCode,
    says: string },
  /**
   * `read`: the path whose ETag the operation takes; `by`: what bob changes meanwhile; `why`: what is told to whoever
   * has not seen his change
   */
  late?: { read: string, by: [method: 'put' | 'patch', path: string, body: object], seen: (admin: A) => string,
    why: string },
  /** whether no session may ask for it */
  isForToken?: boolean,
  /** whether it has no end */
  isStream?: boolean
}
export type Params = Record<string, string | number>
export const missing = (path: Params, says: string) => ({ path, code: 'not-found' as const, says })
export const badBody = (body: Record<string, unknown>, says: string, code: ErrorCode = 'invalid-body') => ({ body, code,
  says })

/** by the name of the operation; several, where it has several kinds */
export type Rows<A = Admin> = Record<string, Row<A> | Row<A>[]>
