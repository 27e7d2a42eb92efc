import { columnsTable, type Columns } from './output.ts'
import { checkedForm, checkedId, checkedWord, misuse, queryOf } from './usage.ts'
import type { ApiClient } from './api-client.ts'
import type { Context, TextOption } from './commands.ts'

/** What commands have in common that ask the master for a list, or to do one thing. */

/** What one of several actions of a command does. `words`: how many may follow it; default: one */
export type Action = { run: (context: Context, ...words: string[]) => Promise<number | void>, words?: number }
type Actions<Row extends Action = Action> = Readonly<Record<string, Row>>

/** Makes a command of several actions; what is no row takes one word. `otherwise`: what it does where none is named */
export function actionsCommand (command: string, given: Readonly<Record<string, Action | Action['run']>>,
  otherwise: Action['run'])
{
  const actions: Actions = Object.fromEntries(
    Object.entries(given).map(([name, action]) => [name, typeof action === 'function' ? { run: action } : action])
  )
  return async (context: Context, ...typed: (string | string[] | undefined)[]) => {
    const [name, ...words] = typed.flat().filter((word) => word !== undefined)
    if (name === undefined) return await otherwise(context)
    return await checkedAction(command, actions, [name, ...words]).run(context, ...words)
  }
}

/** `hintOf`: what helps whoever has given a word too many @throws {DeckError} usage */
export function checkedAction<Row extends Action> (command: string, actions: Actions<Row>,
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
 * @param call such as `POST /workers/:id/kill`
 */
export function orderFor<Subject extends string | number, Answer> (check: (word: string | undefined) => Subject,
  call: `${'POST' | 'DELETE'} /${string}` | ((api: ApiClient, subject: Subject) => Promise<Answer>),
  sentence: (answer: Answer, subject: Subject) => string)
{
  return async ({ api, answer }: Context, word?: string) => {
    const subject = check(word)
    const body = typeof call === 'function' ? await call(api, subject) : await callFor(api, call, subject)
    answer(body, () => sentence(body, subject))
  }

  async function callFor (api: ApiClient, call: string, subject: Subject): Promise<Answer> {
    const [method, path] = call.split(' ')
    return await api.call(method, path.replace(':id', encodeURIComponent(subject)))
  }
}

/** Makes the check of a word that is to be an id. `of`: what it names */
export function idOf (command: string, of?: string): (word: string | undefined) => number {
  return (word) => checkedId(command, word, of)
}

/**
 * A list of the API, as a command of its name prints it.
 * @template One what the API tells of one thing in it
 */
export type List<Item, One> = {
  path: `/${string}`,
  /** the options that say what is wanted; the master checks their values */
  filters?: readonly TextOption[],
  limit?: number,
  textOf: (list: { items: Item[] }) => string,
  /** one thing of the list, where a word names that */
  one?: { form: RegExp, expected: string, textOf: (one: One) => string }
}

export function listCommand<Item, One = never> ({ path, filters = [], limit, textOf, one }: List<Item, One>) {
  return async ({ api, options, answer }: Context, id?: string | string[]) => {
    if (one && typeof id === 'string') {
      const found = await api.get<One>(`${path}/${checkedForm(path.slice(1), one.form, one.expected, id)}`)
      return answer(found, () => one.textOf(found))
    }
    const list = await api.get<{ items: Item[] }>(withQuery(path, queryOf(options, filters, { limit })))
    answer(list, () => textOf(list))
  }
}

/** `empty`: what is said where there is none */
export function tableText<Item> (columns: Columns<Item>, empty: string = '') {
  return ({ items }: { items: Item[] }) =>
    items.length === 0 && empty !== '' ? empty : columnsTable(columns, items, Date.now())
}

function withQuery (path: string, query: URLSearchParams) {
  return query.size === 0 ? path : `${path}?${query}`
}
