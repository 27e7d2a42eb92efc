setInterval(() => console.log('tick'), 500)
