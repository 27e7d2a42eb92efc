// Gives access and takes it away. The secret of a new token and the address of a new link are shown once, as no later
// answer has them.
import { BASE } from './base.ts'
import { findElement } from './elements.ts'
import { warnOfChange } from './changed.ts'
import { localiseTimes } from './ticks.ts'
import { showToast } from './toasts.ts'

type Problem = { detail: string, now?: string }

onSubmit('new-link', async (fields) => {
  const { name, role } = Object.fromEntries(fields)
  const made: { url: string, until: string } | null = await sendRequest('POST', '/api/v1/sign-in-links', {
    ...personOf(fields),
    ttl: fields.get('ttl')
  }, tokenIn(fields))
  if (made) showMade('made-link', { name, role: `${role}`, secret: made.url, until: made.until })
})

onSubmit('new-token', async (fields) => {
  const made: { token: string } | null = await sendRequest('POST', '/api/v1/tokens', { ...personOf(fields),
    ttl: `${fields.get('days')}d` }, tokenIn(fields))
  if (made) showMade('made-token', { name: fields.get('name'), secret: made.token })
})

onSubmit('revoke', async (fields, form) => {
  const { id, tag } = Object.fromEntries(fields)
  const answer = await ask('DELETE', `/api/v1/tokens/${id}`, { headers: { 'if-match': `"${tag}"` } })
  if (answer.status === 412) return warnOfChange(form, await answer.json() as Problem, 'tag')
  form.closest('dialog')?.close()
  if (!answer.ok) return showToast((await answer.json() as Problem).detail)
  const { name, kind, alsoEnded }: { name: string, kind: string, alsoEnded: number[] } = await answer.json()
  const others = alsoEnded.length > 0 ? ` What it had created has ended, too: ${alsoEnded.join(', ')}.` : ''
  showToast(`The ${kind} of ${name} is revoked; its sessions are closed.${others}`, 'info')
})

// Links for operators and admins need a token: sessions that could make such links would renew themselves for ever.
document.querySelector('#new-link [name=role]')?.addEventListener('change', ({ target }) => {
  const needsToken = (target as HTMLSelectElement).value !== 'viewer'
  for (const part of document.querySelectorAll('#new-link [data-needs-token]'))
    (part as HTMLElement).hidden = !needsToken
  findElement('#new-link [name=token]', HTMLInputElement).disabled = !needsToken
})

document.addEventListener('click', ({ target }) => {
  const opener = target instanceof Element && target.closest('[data-dialog=dialog-revoke]')
  if (!opener) return
  const own = document.querySelector('[data-own]')?.getAttribute('data-own')
  findElement('#revoke-own', HTMLElement).hidden = !own ||
    !opener.getAttribute('data-fill-ends')?.split(' ').includes(own)
})

function onSubmit (id: string, send: (fields: FormData, form: HTMLFormElement) => Promise<void>) {
  const form = findElement(`#${id}`, HTMLFormElement)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    await send(new FormData(form), form).catch(() => showToast('The master did not answer. Nothing was changed.'))
  })
}

function personOf (fields: FormData) {
  const apps = fields.getAll('app')
  return { name: fields.get('name'), role: fields.get('role'), ...(apps.length > 0 && { apps }) }
}

/** Undefined: the session is enough */
function tokenIn (fields: FormData): string | undefined {
  return fields.get('token')?.toString().trim()
}

function showMade (id: string,
  { name, role = '', secret, until }: { name: unknown, role?: string, secret: string, until?: string })
{
  const place = findElement(`#${id}`, HTMLElement)
  for (const part of place.querySelectorAll('[data-made]'))
    part.textContent = part.getAttribute('data-made') === 'name' ? String(name) : role
  findElement('code', HTMLElement, place).textContent = secret
  place.querySelector('time')?.setAttribute('datetime', until ?? '')
  localiseTimes(place)
  place.hidden = false
  findElement('[data-copy]', HTMLElement, place).focus()
}

/** `token`: instead of the session. Returns null: refused; the page shows why. */
async function sendRequest<Answer> (method: string, path: string, body: object,
  token?: string): Promise<Answer | null>
{
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  const response = await ask(method, path, { headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (response.ok) return answer
  showToast(answer.detail)
  return null
}

function ask (method: string, path: string, { headers, body }: { headers: Record<string, string>, body?: string }) {
  return fetch(BASE + path, { method, headers: { accept: 'application/json, application/problem+json', ...headers },
    body })
}
