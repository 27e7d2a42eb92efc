// Makes and revokes tokens. The secret of a new one is in this answer alone.
import { BASE } from './base.js'
import { findElement } from './elements.js'
import { keepNotice, showKeptNotice, showToast } from './toasts.js'

showKeptNotice()

/** @type {HTMLFormElement | null} */
const form = document.querySelector('form#new-token')
form?.addEventListener('submit', async (event) => {
  event.preventDefault()
  const fields = new FormData(form)
  const apps = fields.getAll('app')
  /** @type {{ token: string } | null} */
  const made = await sendRequest('POST', '/api/v1/tokens', {
    name: fields.get('name'),
    role: fields.get('role'),
    ttl: `${fields.get('days')}d`,
    ...(apps.length > 0 && { apps })
  }, String(fields.get('token')).trim())
  if (!made) return
  findElement('#made-token code', HTMLElement).textContent = made.token
  findElement('#made-token', HTMLElement).hidden = false
})

document.addEventListener('click', async ({ target }) => {
  const id = target instanceof Element && target.closest('[data-revoke]')?.getAttribute('data-revoke')
  if (!id) return
  /** @type {{ alsoEnded: number[] } | null} */
  const ended = await sendRequest('DELETE', `/api/v1/tokens/${id}`)
  if (!ended) return
  const others = ended.alsoEnded.length > 0 ? ` The tokens that it created are revoked, too: ${ended.alsoEnded.join(', ')}.` : ''
  keepNotice(`Token ${id} is revoked; its sessions are closed.${others}`)
  location.reload()
})

/**
 * @template Answer
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {string} [token] instead of the session
 * @returns {Promise<Answer | null>} null: refused; the page shows why
 */
async function sendRequest (method, path, body, token) {
  const response = await fetch(BASE + path, {
    method,
    headers: {
      accept: 'application/json, application/problem+json',
      ...(body && { 'content-type': 'application/json' }),
      ...(token && { authorization: `Bearer ${token}` })
    },
    body: body && JSON.stringify(body)
  })
  const answer = await response.json()
  if (response.ok) return answer
  showToast(answer.detail)
  return null
}
