import { checkedWord, misuse } from './usage.ts'
import type { ApiClient } from './api-client.ts'
import type { Context } from './commands.ts'

/** What one of several actions of a command does. `words`: how many may follow it; default: one */
export type Action = { run: (context: Context, ...words: string[]) => Promise<number | void>, words?: number }

/** `hintOf`: what helps whoever has given a word too many @throws {DeckError} usage */
export function checkedAction<Row extends Action> (command: string, actions: Readonly<Record<string, Row>>,
  [name, ...words]: readonly string[], hintOf: (surplus: string) => string = () => ''): Row
{
  const action = actions[checkedWord(command, Object.keys(actions), name)]
  const surplus = words.at(action.words ?? 1)
  if (surplus !== undefined)
    throw misuse(`${command} ${name}`, 'nothing more', JSON.stringify(surplus) + hintOf(surplus))
  return action
}

/**
 * Makes what asks the master to do something with one thing, and says in a sentence what has come of it.
 * @param check of the word that names the thing
 */
export function orderFor<Subject, Answer> (check: (word: string | undefined) => Subject,
  call: (api: ApiClient, subject: Subject) => Promise<Answer>, sentence: (answer: Answer, subject: Subject) => string)
{
  return async ({ api, answer }: Context, word?: string) => {
    const subject = check(word)
    const body = await call(api, subject)
    answer(body, () => sentence(body, subject))
  }
}
