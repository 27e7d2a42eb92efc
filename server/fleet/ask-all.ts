import { DeckError } from '../errors.ts'

/**
 * Asks many members at the same time, and says how many answered.
 * `silent`: did not answer in time
 */
export type Asked = { asked: number, answered: number, silent: string[],
  refused: { member: string, problem: string }[] }

/** Limits the memory that answers take at the same time. */
const ASKED_AT_ONCE = 50
/** These codes say that the member has not answered. */
const SILENCE = new Set(['no-master', 'timed-out', 'fleet-away', 'stopping'])

export async function askAll<T> (members: { member: string }[],
  work: (member: string) => Promise<T>): Promise<Asked & { values: { member: string, value: T }[] }>
{
  const outcomes: ({ member: string, value: T } | { member: string, error: DeckError })[] = []
  // All loops share one iterator, so each takes the next member.
  const rest = members.entries()
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, async () => {
    for (const [index, { member }] of rest) outcomes[index] = await outcomeOf(member, work)
  }))
  const values = outcomes.flatMap((each) => 'value' in each ? [each] : [])
  const failures = outcomes.flatMap((each) => 'error' in each ? [each] : [])
  return { asked: members.length, answered: values.length,
    silent: failures.filter(({ error }) => SILENCE.has(error.code)).map(({ member }) => member),
    refused: failures.filter(({ error }) => !SILENCE.has(error.code)).map(({ member, error }) => ({ member,
      problem: error.message })
    ), values }
}

async function outcomeOf<T> (member: string,
  work: (member: string) => Promise<T>): Promise<{ member: string, value: T } | { member: string, error: DeckError }>
{
  try {
    return { member, value: await work(member) }
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    return { member, error }
  }
}
