import{G as e,N as t,Q as n,X as r,Z as i,at as a,et as o,nt as s,ot as c,q as l,rt as u,w as d}from"./page.js";function f({value:e,key:t,name:n,labels:r,priority:a}){let o={value:m(`The value is no JSON`,()=>i(e))};t&&(o.idempotency_key=t),n&&(o.name=n),a&&(o.priority=Number(a));let s=r.split(`
`).map(e=>e.trim()).filter(Boolean);return s.length>0&&(o.labels=Object.fromEntries(s.map(p))),o}function p(e){let t=e.indexOf(`=`);if(t<1)throw new r(400,{detail:`The label “${e}” has no name.`,remedy:`Write each label as name=value on a line of its own.`});return[e.slice(0,t).trim(),e.slice(t+1).trim()]}function m(e,t){try{return t()}catch(t){throw new r(400,{detail:`${e}: ${t instanceof Error?t.message:t}.`,remedy:`Correct it.`})}}function h({kind:i,onClose:p}){let[m,h]=c({value:``,key:``,name:``,labels:``,priority:``,reason:``}),[_,v]=c(!1),[y,b]=c(null),[x,S]=c(!1),C=a(0),w=a(n()),T=`kinds/${encodeURIComponent(i)}/submit`,E=!m.value.trim(),D=async e=>{C.current+=1;let t=C.current,n=()=>t===C.current;S(!0),b(null);try{await e(n)}catch(e){if(!(e instanceof r))throw e;n()&&b(e)}finally{n()&&S(!1)}},{reason:O,...k}=m,A=JSON.stringify(k);u(()=>{if(C.current+=1,v(!1),b(null),S(!E),E)return;let e=window.setTimeout(()=>D(async e=>{await o(T,f(m),!0),e()&&v(!0)}),300);return()=>window.clearTimeout(e)},[A]);let j=()=>D(async()=>{let{submitted:t}=await o(T,{...f(m),reason:O,key:w.current});p(),e(l(t))}),M=!x&&_,N=(e,t,n,r=`text`)=>s`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <input type=${r} value=${m[e]} autocomplete="off" spellcheck="false" onInput=${t=>h({...m,[e]:t.target.value})} /></label>`,P=(e,t,n,r=2)=>s`
    <label class="field"><span>${t} <span class="dim">${n}</span></span>
      <textarea class="mono" rows=${r} value=${m[e]} autofocus=${e===`value`} autocomplete="off" spellcheck="false" onInput=${t=>h({...m,[e]:t.target.value})}></textarea></label>`;return s`
    <${t} title=${s`Start <bdi class="mono">${i}</bdi>`} onClose=${p}>
      <form onSubmit=${e=>{e.preventDefault(),M&&j()}}>
        ${P(`value`,`Value`,`JSON, as the kind expects it.`,6)}
        ${N(`key`,`Idempotency key`,`A second submission with this key finds the first.`)}
        ${N(`name`,`Name`,`Shown beside its id.`)}
        ${P(`labels`,`Labels`,`name=value, one a line.`)}
        ${N(`priority`,`Priority`,`0 unless set; higher goes first.`,`number`)}
        ${N(`reason`,`Reason`,`Recorded in the audit log.`)}
        <p role="status" class=${_?`done`:`dim`}>${g(E,x,_)}</p>
        ${y&&s`<${d} error=${y} />`}
        <footer>
          <button type="button" onClick=${p}>Cancel</button>
          <button type="submit" class="main" disabled=${!M}>Start</button>
        </footer>
      </form>
    <//>`}function g(e,t,n){return e?`Write the value: it is checked before anything starts.`:n?`The kind takes this value.`:t?`Checking the value …`:``}export{h as Start};