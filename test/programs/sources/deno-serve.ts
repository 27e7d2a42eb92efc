Deno.serve({ port: Number(Deno.env.get('PORT')) }, () => new Response(`hello from deno, pid ${Deno.pid}`))
