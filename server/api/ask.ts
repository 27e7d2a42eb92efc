import { z } from 'zod'
import { OWNER } from '../config/actor-names.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { DeckError } from '../errors.ts'
import { COUNT } from './fields.ts'
import type { AppFleet } from '../fleet/app-fleet.ts'
import type { Person } from '../fleet/rpc-client.ts'

/** Asks hosts of a fleet for the answer of an operation, each by its own API. What they say is not trusted. */
export type Hosts = z.infer<typeof HOSTS>
type Fleet = Pick<AppFleet, 'obtain'>
/** `answer`: what is read of it; `withinMs`: of each host */
type Question<S extends z.ZodType> = Omit<Parameters<AppFleet['obtain']>[1], 'method'> & {
  method?: Parameters<AppFleet['obtain']>[1]['method'],
  answer: S,
  withinMs: number
}

/** Who asks for a page: whoever may see it here, may see all of what a host lets others read. */
export const VIEWER: Person = Object.freeze({ name: null, actor: OWNER, role: 'viewer', client: 'dashboard' })

const ALL = '*'
/** Limits the memory that answers take at the same time. */
const ASKED_AT_ONCE = 50
/** These codes say that the host has not answered. */
const SILENCE = new Set(['no-master', 'timed-out', 'fleet-away', 'stopping'])
const MAX_CHARS = 4000
const MAX_ITEMS = 1024
const ISO_TIME = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/).refine((text) => !Number.isNaN(Date.parse(text)))

/** Chooses the hosts of a list. */
export const OF_MEMBER = z.union([z.literal(ALL), z.string().regex(MEMBER_NAME)]).optional().describe(
  'the name of a member of the fleet, or * for all of them; without it this host alone'
)

/** @returns the name of the only member, or undefined for all */
export function onlyOf (member: string): string | undefined {
  return member === ALL ? undefined : member
}

const NAMES = z.array(z.string())
export const HOSTS = z.strictObject({ asked: COUNT.describe('how many members were asked'),
  answered: COUNT.describe('how many members answered, including this host'),
  silent: NAMES.describe('members that did not answer in time or cannot be asked'),
  refused: z.array(z.strictObject({ member: z.string(), problem: z.string() })).describe('members that refused'),
  cut: NAMES.describe('members that have more than they have said') }).describe('who has answered')
export const NO_HOSTS: Hosts = Object.freeze({ asked: 0, answered: 0, silent: [], refused: [], cut: [] })

/** @returns all hosts that are missing in an answer */
export function missingIn ({ silent, refused }: Pick<Hosts, 'silent' | 'refused'>): string[] {
  return [...silent, ...refused.map(({ member }) => member)]
}

/** @throws {DeckError} as `obtain`, and not-possible: the answer is none of this operation */
export async function askHost<S extends z.ZodType> (fleet: Fleet, member: string,
  { method = 'GET', answer, withinMs, ...order }: Question<S>, person: Person): Promise<z.infer<S>>
{
  const said = answer.safeParse(await fleet.obtain(member, { method, ...order }, person, { withinMs })).data
  if (said === undefined) throw new DeckError('not-possible', `${member} sent an answer that this version cannot read`)
  return said
}

/**
 * Does the work with many hosts at the same time.
 * @param work tells whether the host has more than it has said
 */
export async function askAll (members: readonly { member: string }[],
  work: (member: string) => Promise<boolean>): Promise<Hosts>
{
  const outcomes: { member: string, isCut?: boolean, error?: DeckError }[] = []
  // All loops share one iterator, so each takes the next member.
  const rest = members.entries()
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, async () => {
    for (const [index, { member }] of rest) {
      const isCut = await work(member).catch(toRefusal)
      outcomes[index] = { member, ...(typeof isCut === 'boolean' ? { isCut } : { error: isCut }) }
    }
  }))
  const failures = outcomes.flatMap(({ member, error }) => error ? [{ member, error }] : [])
  return { asked: members.length, answered: members.length - failures.length,
    silent: failures.filter(({ error }) => SILENCE.has(error.code)).map(({ member }) => member),
    refused: failures.filter(({ error }) => !SILENCE.has(error.code)).map(({ member, error }) => ({ member,
      problem: error.message })
    ), cut: outcomes.filter(({ isCut }) => isCut).map(({ member }) => member) }
}

function toRefusal (error: unknown): DeckError {
  if (error instanceof DeckError) return error
  throw error
}

/**
 * A shape of the API as another host may send it: with fields more, and longer texts, which are cut. Its lists have an
 * end, and its times can be read.
 */
export function lenient<S extends z.ZodType> (schema: S, maxItems: number = MAX_ITEMS): z.ZodType<z.infer<S>> {
  return lenientOf(schema, maxItems) as z.ZodType<z.infer<S>>
}

function lenientOf (schema: unknown, maxItems: number): z.ZodType {
  const inner = (part: unknown) => lenientOf(part, maxItems)
  if (schema instanceof z.ZodObject)
    return z.object(Object.fromEntries(Object.entries(schema.shape).map(([name, field]) => [name, inner(field)])))
  if (schema instanceof z.ZodArray) return z.array(inner(schema.element)).max(maxItems)
  if (schema instanceof z.ZodNullable) return inner(schema.unwrap()).nullable()
  if (schema instanceof z.ZodOptional) return inner(schema.unwrap()).optional()
  if (!(schema instanceof z.ZodString)) return schema as z.ZodType
  if (schema.meta()?.format === 'date-time') return ISO_TIME
  return schema.def.checks?.length ? schema.max(MAX_CHARS) : schema.transform(cutText)
}

/** A substring would keep the whole text in memory. */
function cutText (text: string): string {
  return text.length > MAX_CHARS ? Buffer.from(text.slice(0, MAX_CHARS)).toString() : text
}
